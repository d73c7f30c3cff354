# SPDX-License-Identifier: BSD-3-Clause
"""A server with TLS: certificates made on the spot by openssl(1), and
connections by Python's ssl."""

import os
import shutil
import socket
import ssl
import subprocess

import tap
from server import LIMIT_S, Closed, Connection, Server, make_directory


def openssl(*arguments, data=b"", check=True):
    """Runs openssl(1); what it has written, both ways."""
    if shutil.which("openssl") is None:
        raise tap.Skip("openssl(1) is not installed")
    done = subprocess.run(
        ["openssl", *arguments], input=data, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False,
    )
    text = done.stdout.decode("latin-1")
    if check and done.returncode != 0:
        raise AssertionError("openssl %s: %s" % (arguments, text))
    return text


class Certificates:
    """A CA, the server's certificate and key, and those of clients, in a
    directory of their own. Keys are of P-256 unless it says RSA."""

    def __init__(self, algorithm=("ec", "-pkeyopt",
                                  "ec_paramgen_curve:P-256")):
        self.directory = make_directory()
        self.algorithm = algorithm
        self.ca = self.path("ca.pem")
        self.chain = self.path("server.pem")
        self.key = self.path("server.key")
        self.make_ca("ca")
        self.make("server", "ca")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.directory, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.directory, name)

    def own(self, path):
        """Only the server's user, and this test, may read a key."""
        owner = os.stat(self.directory)
        os.chmod(path, 0o600)
        os.chown(path, owner.st_uid, owner.st_gid)

    def make_ca(self, name):
        openssl("req", "-x509", "-newkey", *self.algorithm, "-nodes",
                "-keyout", self.path(name + ".key"),
                "-out", self.path(name + ".pem"), "-days", "2",
                "-subj", "/CN=" + name)

    def make(self, name, ca, days=2):
        """A certificate for 127.0.0.1 that ca has signed; -1 day: it has run
        out."""
        request = self.path(name + ".csr")
        extensions = self.path("extensions")
        with open(extensions, "w", encoding="ascii") as out:
            out.write("subjectAltName=IP:127.0.0.1,IP:127.0.0.2\n")
        openssl("req", "-newkey", *self.algorithm, "-nodes",
                "-keyout", self.path(name + ".key"), "-out", request,
                "-subj", "/CN=" + name)
        openssl("x509", "-req", "-in", request, "-days", str(days),
                "-CA", self.path(ca + ".pem"),
                "-CAkey", self.path(ca + ".key"), "-CAcreateserial",
                "-extfile", extensions, "-out", self.path(name + ".pem"))
        self.own(self.path(name + ".key"))

    def options(self, more=""):
        """What the server wants."""
        names = "ssl_chain_cert=%s,ssl_key=%s" % (self.chain, self.key)
        return ["-Z", "-o", names + ("," + more if more else "")]

    def context(self, client=None, version=None):
        """A client's; client: whose certificate it shows."""
        context = ssl.create_default_context(cafile=self.ca)
        if client is not None:
            context.load_cert_chain(
                self.path(client + ".pem"), self.path(client + ".key"))
        if version is not None:
            context.minimum_version = version
            context.maximum_version = version
        return context


class TlsConnection(Connection):
    """A Connection behind TLS."""

    def __init__(self, address, context):
        super().__init__(address)
        try:
            self.socket = context.wrap_socket(
                self.socket, server_hostname="127.0.0.1")
        except BaseException:
            self.socket.close()
            raise

    def send(self, data):
        try:
            super().send(data)
        except ssl.SSLError as error: # the server has said that it closes
            raise Closed("while sending") from error

    def fill(self):
        try:
            super().fill()
        except ssl.SSLError as error:
            raise Closed(str(error)) from error

    def certificate(self):
        return self.socket.getpeercert(binary_form=True)


class TlsServer(Server):
    """A Server whose connections are with TLS."""

    def __init__(self, *options, certificates, more="", **named):
        super().__init__(*certificates.options(more), *options, **named)
        self.context = certificates.context()

    def connect(self, context=None):
        return TlsConnection(
            ("127.0.0.1", self.port), context or self.context)

    def try_connect(self):
        """Without TLS: perhaps there is no client that may come in."""
        try:
            self.connect_plain().close()
            return True
        except (ConnectionError, FileNotFoundError):
            return False

    def connect_plain(self):
        return Connection(("127.0.0.1", self.port))


def hello(context):
    """What a client sends first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing,
                              server_hostname="127.0.0.1")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def has_tls(path):
    """True where the server at path was built with TLS."""
    text = subprocess.run([path, "-h"], stdout=subprocess.PIPE,
                          timeout=LIMIT_S, check=False).stdout
    return b"--enable-ssl" in text
