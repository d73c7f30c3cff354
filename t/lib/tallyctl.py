# SPDX-License-Identifier: BSD-3-Clause
"""tallyctl as a test runs it, and a server that says what it is told to."""

import json
import os
import socket
import subprocess
import threading
import time

import server

PROGRAM = os.path.join(os.environ["top_builddir"], "src/cli/tallyctl")


def tallyctl(*words, address=None, **environment):
    """Runs it to its end: (exit status, standard output, standard error)."""
    variables = {**os.environ, **environment}
    variables.pop("TALLYD_ADDR", None)
    if address:
        variables["TALLYD_ADDR"] = address
    done = subprocess.run(
        [PROGRAM, *words], stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=server.LIMIT_S, env=variables, check=False)
    return done.returncode, done.stdout, done.stderr


def as_json(*words, **more):
    """What it writes with --json, and the exit status."""
    status, out, err = tallyctl(*words, "--json", **more)
    try:
        return status, json.loads(out)
    except ValueError as error:
        raise AssertionError("%r: %s%s" % (words, out, err)) from error


class Fake:
    """Answers a line by what answers has for it, else by other."""

    def __init__(self, **answers):
        self.answers = {
            "version": "VERSION 1.6.45 tallyd fake",
            **{"stats " + name: "\n".join([*lines, "END"])
               for name, lines in answers.items()}}
        # To what answers does not have; None ends the connection.
        self.other = lambda line: "ERROR"
        self.asked = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.accept, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.socket.close()

    def accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with connection, connection.makefile("r", newline="") as lines:
                for line in lines:
                    line = line.rstrip("\r\n")
                    self.asked.append(line)
                    answer = self.answers.get(line) or self.other(line)
                    if answer is None:
                        break
                    connection.sendall(
                        (answer.replace("\n", "\r\n") + "\r\n").encode())


class Endless(Fake):
    """Whatever it is asked, it answers with that for ever; pause_s between two
    of it."""

    def __init__(self, piece, pause_s=0):
        super().__init__()
        self.piece = piece
        self.pause_s = pause_s

    def accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with connection:
                try:
                    connection.recv(1)
                    while True:
                        connection.sendall(self.piece)
                        time.sleep(self.pause_s)
                except OSError:
                    pass
