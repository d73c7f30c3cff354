# SPDX-License-Identifier: BSD-3-Clause
"""Debian's etcd, one or three of them on loopback or each on a machine of its
own (t/torture/net.py), and a proxy that loses what they answer."""

import base64
import ctypes
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request

import tap
from ports import free_port
from server import LIMIT_S

# What a member may take: a file of its log takes 61 MiB from the start, and the
# next one is made before that is full.
MEMBER_BYTES = 160 << 20
LIBC = ctypes.CDLL(None)


def has_room(directory, n):
    if not os.access(directory, os.W_OK):
        return False
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize >= n * MEMBER_BYTES


def fast_directory(n):
    """On a file system in memory, where there is one with room for n members (a
    container's often has 64 MiB): a disk that others use makes etcd slow."""
    shm = "/dev/shm"
    return tempfile.mkdtemp(
        prefix="tallyd-etcd-", dir=shm if has_room(shm, n) else None)


def end_with_test():
    LIBC.prctl(tap.PR_SET_PDEATHSIG, signal.SIGKILL)


class Member:
    """One etcd. It is started by its Cluster, and again by who has killed it.
    wrapper: words before its command. folder: for its data, else it is one of
    the Cluster's."""

    def __init__(self, cluster, number, ports, host="127.0.0.1", wrapper=(),
                 folder=None):
        self.cluster, self.number = cluster, number
        self.client_port, self.peer_port = ports
        self.host, self.wrapper = host, list(wrapper)
        self.folder = folder
        self.name = "m%d" % number
        self.process = None

    def address(self, port, scheme="http"):
        return "%s://%s:%d" % (scheme, self.host, port)

    def url(self):
        return self.address(self.client_port, self.cluster.scheme)

    def start(self):
        path = os.path.join(self.cluster.directory, self.name)
        with open(path + ".log", "ab") as log:
            self.process = subprocess.Popen(
                [*self.wrapper,
                 "etcd", "--name", self.name, "--data-dir", self.folder or path,
                 "--listen-client-urls", self.url(),
                 "--advertise-client-urls", self.url(),
                 "--listen-peer-urls", self.address(self.peer_port),
                 "--initial-advertise-peer-urls",
                 self.address(self.peer_port),
                 "--initial-cluster", ",".join(
                     "%s=%s" % (one.name, one.address(one.peer_port))
                     for one in self.cluster.members),
                 *self.cluster.options],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                preexec_fn=end_with_test)

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        if number == signal.SIGKILL:
            self.process.wait()


class Cluster:
    """n etcds that agree. certificates: of tls.Certificates; clients speak TLS
    and show one of the same CA then. machines: for each its address, the words
    before its command and, maybe, a folder for its data."""

    def __init__(self, n=1, certificates=None, machines=()):
        if shutil.which("etcd") is None:
            raise tap.Skip("etcd is not installed")
        self.machines = list(machines) or [("127.0.0.1", ())] * n
        self.directory = fast_directory(n)
        self.options = ["--bcrypt-cost", "4"]  # of passwords: the least
        self.token = None  # of the user that calls are made as
        self.scheme = "http"
        self.context = None
        if certificates is not None:
            self.scheme = "https"
            self.context = certificates.context("server")
            self.options += [
                "--cert-file", certificates.chain,
                "--key-file", certificates.key, "--client-cert-auth",
                "--trusted-ca-file", certificates.ca]
        try:
            self.start(n)
        except BaseException:
            self.stop()
            raise

    def start(self, n):
        end = time.monotonic() + LIMIT_S
        while True:
            ports = [free_port() for _ in range(2 * n)]
            self.members = []
            for number in range(n):
                self.members.append(
                    Member(self, number, ports[2 * number:2 * number + 2],
                           *self.machines[number]))
            for member in self.members:
                member.start()
            while time.monotonic() < end and self.are_running():
                if self.is_ready() and self.are_running():
                    return
                time.sleep(0.05)
            tap.check(time.monotonic() < end, "etcd does not begin")
            self.stop()  # somebody else was quicker and has a port
            os.makedirs(self.directory)

    def are_running(self):
        return all(one.process.poll() is None for one in self.members)

    def is_ready(self):
        """All of them answer."""
        try:
            for number in range(len(self.members)):
                self.call("kv/range", {"key": encode("x")}, number)
            return True
        except (OSError, ValueError, http.client.HTTPException):
            return False

    def call(self, path, body, member=0, limit_s=LIMIT_S):
        """What a member answers; by Python, so that nothing of tallyd's is
        asked whether it is right, and through no proxy of the machine's."""
        request = urllib.request.Request(
            "%s/v3/%s" % (self.members[member].url(), path),
            data=json.dumps(body).encode(),
            headers={"Authorization": self.token} if self.token else {})
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}),
            urllib.request.HTTPSHandler(context=self.context))
        with opener.open(request, timeout=limit_s) as answer:
            return json.loads(answer.read())

    def value(self, key, member=0):
        """Of a key, as JSON; None where there is none."""
        return first_value(self.call("kv/range", {"key": encode(key)}, member))

    def put(self, key, value):
        answer = self.call(
            "kv/put", {"key": encode(key), "value": encode(value)})
        return int(answer["header"]["revision"])

    def delete(self, key):
        self.call("kv/deleterange", {"key": encode(key)})

    def add_user(self, name, password, prefix):
        """Who may read and write what begins with prefix."""
        self.call("auth/user/add", {"name": name, "password": password})
        self.call("auth/role/add", {"name": name})
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        self.call("auth/role/grant", {
            "name": name,
            "perm": {"permType": "READWRITE", "key": encode(prefix),
                     "range_end": encode(end)}})
        self.call("auth/user/grant", {"user": name, "role": name})

    def want_users(self):
        """From now on who asks has to say who it is; calls are root's."""
        self.call("auth/user/add", {"name": "root", "password": "root"})
        self.call("auth/user/grant", {"user": "root", "role": "root"})
        self.call("auth/enable", {})
        self.become_root()

    def become_root(self):
        self.token = None
        self.token = self.call("auth/authenticate", {
            "name": "root", "password": "root"})["token"]

    def leader(self):
        """The number of the member that leads; all are there."""
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            for number in range(len(self.members)):
                answer = self.call("maintenance/status", {}, number)
                if answer.get("leader") == answer["header"]["member_id"]:
                    return number
            time.sleep(0.05)  # an election is under way
        raise AssertionError("no member leads")

    def urls(self):
        return [member.url() for member in self.members]

    def stop(self):
        for member in getattr(self, "members", []):
            if member.process is not None and member.process.poll() is None:
                member.kill()
            if member.folder:
                shutil.rmtree(member.folder, ignore_errors=True)
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def encode(text):
    return base64.b64encode(text.encode()).decode()


def first_value(found):
    """Of what kv/range answers, as JSON; None where it has found nothing."""
    pairs = found.get("kvs", [])
    return json.loads(base64.b64decode(pairs[0]["value"])) if pairs else None


class Proxy:
    """Stands before a member. loses(path) true: the request goes to etcd, what
    that answers goes nowhere, and the connection is closed. refuses(path) true:
    it is closed before the request goes on."""

    def __init__(self, port):
        self.port_behind = port
        self.loses = self.refuses = lambda path: False
        self.lost = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def url(self):
        return "http://127.0.0.1:%d" % self.port

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(
                target=self.pass_on, args=(client,), daemon=True).start()

    def pass_on(self, client):
        try:
            with client, socket.create_connection(
                    ("127.0.0.1", self.port_behind)) as behind:
                state = {"loses": False}
                back = threading.Thread(
                    target=self.answer, args=(behind, client, state),
                    daemon=True)
                back.start()
                while True:
                    data = client.recv(1 << 16)
                    if not data:
                        break
                    if data.startswith(b"POST "):
                        path = data.split(b" ", 2)[1].decode()
                        if self.refuses(path):
                            break
                        state["loses"] = self.loses(path)
                    behind.sendall(data)
                behind.shutdown(socket.SHUT_WR)
                back.join()
        except OSError:
            pass

    def answer(self, behind, client, state):
        try:
            while True:
                data = behind.recv(1 << 16)
                if not data:
                    break
                if state["loses"]:
                    self.lost += 1
                    break
                client.sendall(data)
        except OSError:
            pass
        try:
            client.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def close(self):
        # closing alone does not wake who waits in accept
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
