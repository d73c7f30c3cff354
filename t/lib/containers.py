# SPDX-License-Identifier: BSD-3-Clause
"""What is asked of a Containerfile and of a compose file, as far as it can be
seen without an engine. Each function returns a list of what is wrong."""

import json
import os
import re

INSTRUCTIONS = {
    "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK",
    "LABEL", "RUN", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR",
}
SERVICE_KEYS = {
    "build", "cap_drop", "command", "depends_on", "environment", "image",
    "ports", "read_only", "restart", "security_opt", "stop_grace_period",
    "volumes",
}
RESTARTS = {"no", "always", "on-failure", "unless-stopped"}


def instructions(text):
    """[(instruction, words)] of a Containerfile, lines joined."""
    lines = [line for line in text.splitlines()
             if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    found = []
    for line in joined.splitlines():
        if line.strip():
            name, _, words = line.strip().partition(" ")
            found.append((name, " ".join(words.split())))
    return found


def stages(text):
    """[(image, name, [(instruction, words)])] in their order."""
    found = []
    for name, words in instructions(text):
        if name == "FROM":
            image, *rest = words.split()
            found.append((image, rest[-1] if rest else "", []))
        elif found:
            found[-1][2].append((name, words))
    return found


def last(stage, instruction):
    """Its words, where a stage has it; else None."""
    return next((words for name, words in reversed(stage[2])
                 if name == instruction), None)


def is_pinned(image):
    """An image by a tag that says which."""
    tag = image.rpartition("/")[2].partition(":")[2]
    return bool(tag) and tag != "latest"


def exec_form(words):
    """The list that an engine executes without a shell; None where it is a
    line for a shell."""
    try:
        found = json.loads(words or "")
    except ValueError:
        return None
    return found if isinstance(found, list) else None


def wrong_run(words):
    """A RUN that installs packages leaves no lists behind, and asks nobody."""
    wrong = []
    if re.search("apt-get (install|build-dep)", words):
        if "apt-get update" not in words:
            wrong.append("apt-get install without an update in the same RUN")
        if "--yes" not in words or "--no-install-recommends" not in words:
            wrong.append("apt-get install: --yes --no-install-recommends")
    if "apt" in words and not re.search(
            r"rm -rf (/\w+ )?/var/lib/apt/lists/\*", words):
        wrong.append("lists of packages stay in the image")
    if re.search(r"\b(sudo|curl|wget|chmod 777)\b", words):
        wrong.append("RUN " + words)
    return wrong


def wrong_copy(words, top, names):
    """What is copied is there: in the tree, or in an earlier stage."""
    options = [word for word in words.split() if word.startswith("--")]
    sources = [word for word in words.split() if not word.startswith("--")]
    stage = [word[7:] for word in options if word.startswith("--from=")]
    if stage:
        return [] if stage[0] in names else ["no stage " + stage[0]]
    return ["%s is not in the tree" % source for source in sources[:-1]
            if not os.path.exists(os.path.join(top, source))]


def wrong_end(stage):
    """The stage that is started: not root, looked after, without a shell."""
    wrong = []
    user = (last(stage, "USER") or "root").partition(":")[0]
    if user in ("root", "0"):
        wrong.append("%s: runs as root" % stage[1])
    if exec_form(last(stage, "ENTRYPOINT")) is None:
        wrong.append("%s: ENTRYPOINT is for a shell" % stage[1])
    return wrong


def wrong_containerfile(text, top):
    """A Containerfile whose context is the directory top."""
    wrong, names = [], set()
    wrong += ["%s is not known" % name for name, _ in instructions(text)
              if name not in INSTRUCTIONS]
    for stage in stages(text):
        image, stage_name, lines = stage
        if image not in names and not is_pinned(image):
            wrong.append("FROM %s: which one?" % image)
        if not stage_name or stage_name in names:
            wrong.append("FROM %s: a name of its own is wanted" % image)
        for name, words in lines:
            if name == "RUN":
                wrong += wrong_run(words)
                wrong += ["no stage " + used for used in
                          re.findall(r"--mount=\S*\bfrom=([^,\s]+)", words)
                          if used not in names]
            elif name == "COPY":
                wrong += wrong_copy(words, top, names)
            elif name == "WORKDIR" and not words.startswith("/"):
                wrong.append("WORKDIR %s is relative" % words)
            elif name == "ENV" and re.search(r"(?i)passw|secret", words):
                wrong.append("a secret in ENV")
        if last(stage, "ENTRYPOINT") is not None:
            wrong += wrong_end(stage)
        names.add(stage_name)
    final = stages(text)[-1]
    check = last(final, "HEALTHCHECK") or ""
    if exec_form(check.partition("CMD ")[2]) is None:
        wrong.append("no HEALTHCHECK without a shell")
    if last(final, "ENTRYPOINT") is None:
        wrong.append("the last stage starts nothing")
    return wrong


def wrong_build(name, build, folder):
    """Its Containerfile has the stage that a service wants."""
    context = os.path.join(folder, build.get("context", "."))
    path = os.path.join(context, build.get("dockerfile", "Containerfile"))
    if not os.path.exists(path):
        return ["%s: no %s" % (name, path)]
    with open(path, encoding="utf-8") as file:
        names = {stage[1] for stage in stages(file.read())}
    if build.get("target") not in names:
        return ["%s: no stage %s" % (name, build.get("target"))]
    return []


def wrong_volumes(name, service, document, folder):
    """Each is declared, or a file of the tree that cannot be written to."""
    wrong = []
    for volume in service.get("volumes", []):
        source, _, rest = volume.partition(":")
        if not source.startswith("."):
            if source not in document.get("volumes", {}):
                wrong.append("%s: volume %s" % (name, source))
        elif not os.path.isfile(os.path.join(folder, source)):
            wrong.append("%s: no file %s" % (name, source))
        elif not rest.endswith(":ro"):
            wrong.append("%s: %s may be written to" % (name, source))
    return wrong


def wrong_service(name, service, document, folder):
    """One service of a compose file."""
    wrong = ["%s: %s is not known" % (name, key)
             for key in sorted(set(service) - SERVICE_KEYS)]
    if "build" in service:
        wrong += wrong_build(name, service["build"], folder)
    elif not is_pinned(service.get("image", "")):
        wrong.append("%s: which image?" % name)
    if service.get("restart") not in RESTARTS:
        wrong.append("%s: restart" % name)
    if service.get("cap_drop") != ["ALL"] or \
            "no-new-privileges:true" not in service.get("security_opt", []):
        wrong.append("%s: keeps rights" % name)
    for port in service.get("ports", []):
        if not re.fullmatch(r"127\.0\.0\.1:\d+:\d+", str(port)):
            wrong.append("%s: port %s is for everybody" % (name, port))
    wrong += ["%s: no service %s" % (name, other)
              for other in service.get("depends_on", [])
              if other not in document["services"]]
    return wrong + wrong_volumes(name, service, document, folder)


def wrong_compose(document, folder):
    """A compose file, parsed; folder: where it lies."""
    wrong = ["%s is not known" % key for key in document
             if key not in ("services", "volumes") and key[:2] != "x-"]
    ports = []
    for name, service in document["services"].items():
        wrong += wrong_service(name, service, document, folder)
        ports += [str(port).split(":")[1:2] for port in
                  service.get("ports", [])]
    if any(ports.count(port) > 1 for port in ports):
        wrong.append("a port is published twice")
    used = {volume.partition(":")[0]
            for service in document["services"].values()
            for volume in service.get("volumes", [])}
    wrong += ["volume %s has no use" % name for name in
              document.get("volumes", {}) if name not in used]
    return wrong
