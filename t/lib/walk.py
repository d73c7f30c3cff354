# SPDX-License-Identifier: BSD-3-Clause
"""Documents whose boxes are run as they stand there, as a reader would: section
by section, each in an empty directory.

    ```sh         lines of one shell, to which all boxes of the section go
    ```LANGUAGE   with a comment that is a name in its first or second line: a
                  file of that name
    ```text       without one: what the box of sh before it has written

A box that is a file and stands before the first section is in each of them.
Ports are exchanged for free ones. root runs them as nobody. Where a line starts
a server, the next line waits until it answers, as a reader does."""

import os
import re
import shutil
import subprocess

import ports
import server

BIN = os.path.join(os.environ["top_builddir"], "src")
FILE = re.compile(r"^(?:<\?php\n)?(?:#|//) ([\w.]+)\n")
STARTS = re.compile(r"^\S*(tallyd|redis-server)\S* .*(?:-p|--port) (\d+)"
                    r".* &$")


def sections(path):
    """{title: its boxes, each (language, text)} and "" for those before."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    parts = ["", *re.split(r"^## (.*)$", text, flags=re.MULTILINE)]
    return {title: re.findall(r"^```(\w+)\n(.*?)^```", body,
                              re.MULTILINE | re.DOTALL)
            for title, body in zip(parts[::2], parts[1::2])}


def file_of(text):
    """The name of the file that a box is, or None."""
    found = FILE.match(text)
    return found and found.group(1)


class Walk:
    """One section in a directory of its own."""

    def __init__(self, boxes):
        self.boxes = boxes
        self.directory = server.make_directory()
        self.ports = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.directory, ignore_errors=True)

    def exchange(self, text):
        """With ports that are free in the place of those in the document."""
        def free(found):
            if found.group() not in self.ports:
                self.ports[found.group()] = str(ports.free_port())
            return self.ports[found.group()]
        return re.sub(r"\b(?:11211|11212|6379)\b", free, text)

    def programs(self):
        """A directory with programs by the names that a reader calls: copies,
        which another user can read as well."""
        path = os.path.join(self.directory, ".programs")
        os.mkdir(path)
        for name in ("tallyd", "cli/tallyctl"):
            shutil.copy(os.path.join(BIN, name), path)
        return path

    def script(self):
        """All boxes as one script, and what each of sh is to write."""
        lines, due = ["set -eu", "trap 'kill $(jobs -p) 2>/dev/null; wait' "
                      "EXIT"], []
        for language, text in self.boxes:
            text = self.exchange(text)
            name = file_of(text)
            if name is not None:
                with open(os.path.join(self.directory, name), "w",
                          encoding="utf-8") as file:
                    file.write(text)
                os.chmod(file.name, 0o644)
            elif language == "text":
                due[-1] = text
            else:
                lines.append("exec >'%s/.out.%d'" % (
                    self.directory, len(due)))
                due.append(None)
                for line in text.splitlines():
                    lines.append(line)
                    started = STARTS.match(line)
                    if started:
                        lines.append("await %s $! %s" % (
                            started.group(2), started.group(1)))
        return "\n".join(lines) + "\n", due

    def run(self, **environment):
        """Runs it to its end. Yields (what was written, what is due) of each
        box that says it."""
        script, due = self.script()
        path = os.path.join(self.directory, ".script")
        with open(path, "w", encoding="utf-8") as file:
            file.write(AWAIT + script)
        os.chmod(path, 0o644)
        done = subprocess.run(
            ["bash", path], cwd=self.directory, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            user="nobody" if os.geteuid() == 0 else None,
            env={**os.environ, **environment,
                 "PATH": self.programs() + ":" + os.environ["PATH"],
                 "TALLYD_ADDR": "127.0.0.1:" + self.ports.get("11211", "1")},
            timeout=server.LIMIT_S * 15, check=False)
        if done.returncode != 0:
            raise AssertionError("status %d of\n%s\n%s" % (
                done.returncode, script, done.stdout))
        for number, text in enumerate(due):
            if text is not None:
                with open(os.path.join(self.directory, ".out.%d" % number),
                          encoding="utf-8") as file:
                    yield file.read(), text


AWAIT = """
is_ready()
{
    if [ "$2" = tallyd ]; then
        tallyctl ping --ready --server="127.0.0.1:$1" >/dev/null 2>&1
    else
        (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
    fi
}

await()
{
    until is_ready "$1" "$3"; do
        kill -0 "$2"
        sleep 0.05
    done
}
"""
