# SPDX-License-Identifier: BSD-3-Clause
"""podman with images, containers, volumes and networks of its own, all below a
directory, for tests that run as root with mounts and a network of their own.
Images come from no registry but from roots that chroots.Root made."""

import os
import subprocess

from booted import one_hierarchy
from chroots import run, until

# A small machine may not have, or a test may not raise: control groups with
# controllers, limits above this process's, timers of systemd.
CONTAINERS = """[containers]
cgroups = "disabled"
default_ulimits = ["nofile=16384:16384", "nproc=4096:4096"]
log_driver = "k8s-file"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
lock_type = "file"
static_dir = "%(top)s/static"
tmp_dir = "%(top)s/tmp"
volume_path = "%(top)s/volumes"
[network]
network_backend = "netavark"
network_config_dir = "%(top)s/networks"
"""
STORAGE = """[storage]
driver = "overlay"
graphroot = "%(top)s/images"
runroot = "%(top)s/run"
"""


class Engine:
    """podman, and podman-compose, in a new directory below another one."""

    def __init__(self, directory):
        one_hierarchy()
        self.top = os.path.join(directory, "podman")
        os.mkdir(self.top)
        self.environment = dict(os.environ, DISABLE_HC_SYSTEMD="true")
        for name, text in (("CONTAINERS_CONF", CONTAINERS),
                           ("CONTAINERS_STORAGE_CONF", STORAGE)):
            path = os.path.join(self.top, name)
            with open(path, "w", encoding="ascii") as file:
                file.write(text % {"top": self.top})
            self.environment[name] = path

    def run(self, *words, program="podman", status=0):
        return run(program, *words, env=self.environment, status=status)

    def load(self, top, name):
        """An image of a root without what is mounted there."""
        archive = os.path.join(self.top, "root.tar")
        run("tar", "--create", "--one-file-system", "--numeric-owner",
            "--directory", top, "--file", archive, ".")
        self.run("import", archive, name)
        os.unlink(archive)

    def build(self, context, *words):
        """Without a registry; with HEALTHCHECK, which only images of this
        format have."""
        return self.run("build", "--format=docker", "--isolation=chroot",
                        "--network=host", "--pull=never", *words, context)

    def has(self, container, words):
        """A value of a container, by a template."""
        return self.run("inspect", "--format", "{{%s}}" % words,
                        container).strip()

    def is_well(self, container):
        """What its HEALTHCHECK says."""
        subprocess.run(["podman", "healthcheck", "run", container],
                       env=self.environment, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)
        return self.has(container, ".State.Health.Status") == "healthy"

    def wait(self, container):
        until(lambda: self.is_well(container), "health of " + container)

    def clear(self):
        """Ends and removes its containers."""
        self.run("rm", "--all", "--force", "--time=0")
