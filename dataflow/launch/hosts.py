"""Where everybody is: the file of hosts, and what follows from it."""

from __future__ import annotations

import ipaddress
import os
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path

from dataflow.comm.handshake import cluster_digest
from dataflow.errors import DataflowError


class ClusterError(DataflowError):
    """A set of hosts that cannot be run as asked."""


class Unreachable(DataflowError):
    """Hosts that were not there in time."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Certificates for connections between hosts: each host has one, and all are signed by one authority."""

    certificate: Path
    key: Path
    authority: Path

    def server(self) -> ssl.SSLContext:
        """For the side that listens. Whoever connects must have a certificate as well."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=self.authority)
        context.load_cert_chain(self.certificate, self.key)
        context.verify_mode = ssl.CERT_REQUIRED
        return context

    def client(self) -> ssl.SSLContext:
        """For the side that connects."""
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=self.authority)
        context.load_cert_chain(self.certificate, self.key)
        return context


@dataclass(frozen=True, slots=True)
class Cluster:
    """Several hosts, each running `workers` workers; this is number `process` of them.

    On each host the supervisor listens at the port that the file names, and its workers at the ports after that.
    """

    hosts: tuple[tuple[str, int], ...]
    process: int
    workers: int
    secret: bytes
    listen: str = "127.0.0.1"
    tls: Tls | None = None
    wait: float = 30.0  # how long to wait for the other hosts to start, in seconds

    def __post_init__(self) -> None:
        if not 0 <= self.process < len(self.hosts):
            raise ClusterError(
                f"process {self.process} is not one of the {len(self.hosts)} hosts (0 to {len(self.hosts) - 1})"
            )
        for name, port in self.hosts:
            if port + self.workers > 65535:
                raise ClusterError(f"{name}:{port} leaves no ports for {self.workers} workers: choose a lower one")
        if self.wait <= 0:
            raise ClusterError(f"cannot wait {self.wait:g} seconds for the other hosts")
        if len(self.secret) < 16:
            raise ClusterError("the secret must have at least 16 bytes: make one with `python -m dataflow secret`")
        if is_loopback(self.listen) and not is_loopback(self.hosts[self.process][0]):
            raise ClusterError(
                f"this host is {self.hosts[self.process][0]}, where others will look for it, but it would listen on "
                f"{self.listen} only: say --listen {self.hosts[self.process][0]} (or 0.0.0.0) to listen on the network"
            )

    @property
    def peers(self) -> int:
        """How many workers there are on all hosts."""
        return len(self.hosts) * self.workers

    @property
    def local(self) -> range:
        """The numbers of this host's workers."""
        return self.workers_of(self.process)

    def workers_of(self, host: int) -> range:
        """The numbers of a host's workers."""
        return range(host * self.workers, (host + 1) * self.workers)

    def address(self, worker: int) -> tuple[str, int]:
        """Where a worker listens."""
        host, port = self.hosts[worker // self.workers]
        return host, port + 1 + worker % self.workers

    def title(self, host: int) -> str:
        """How messages call a host."""
        name, port = self.hosts[host]
        first, *_, last = (*self.workers_of(host), self.workers_of(host)[-1])
        workers = f"worker {first}" if first == last else f"workers {first} to {last}"
        return f"host {host}, {name}:{port}, with {workers}"

    @property
    def digest(self) -> bytes:
        """What all hosts must have in common."""
        return cluster_digest(self.hosts, self.workers)


def read_secret(path: Path) -> bytes:
    """The secret in a file, which nobody else may read."""
    secret = readable(path).read_bytes().strip()
    found = path.stat()
    by_others = 0o077 if found.st_uid == os.geteuid() else 0o027  # a manager's own file may be given to our group
    if found.st_mode & by_others:
        raise ClusterError(f"others can read {path}: chmod 600 it, or it is no secret")
    return secret


def read_tls(cert: Path | None, key: Path | None, ca: Path | None) -> Tls | None:
    """What the three options for TLS say; None if there are none."""
    if not (cert or key or ca):
        return None
    if not (cert and key and ca):
        raise ClusterError("TLS needs --cert, --key and --ca, all three")
    return Tls(readable(cert), readable(key), readable(ca))


def readable(path: Path) -> Path:
    """The path of a file that can be read."""
    try:
        path.open("rb").close()
    except OSError as error:
        raise ClusterError(f"cannot read {path}: {error.strerror}") from None
    return path


def parse_address(text: str, what: str) -> tuple[str, int]:
    """A `host:port`; `what` is how the message calls it if it is none.

    >>> parse_address("[::1]:9000", "--control")
    ('::1', 9000)
    """
    name, colon, port = text.rpartition(":")
    if not colon or not name or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ClusterError(f"{what} should be host:port, and is {text!r}")
    return name.strip("[]"), int(port)


def parse_hosts(text: str) -> tuple[tuple[str, int], ...]:
    """The hosts of a file: one `host:port` per line; `#` starts a comment.

    >>> parse_hosts("10.0.0.1:9000  # the first\\n10.0.0.2:9000\\n")
    (('10.0.0.1', 9000), ('10.0.0.2', 9000))
    """
    hosts = []
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.partition("#")[0].strip()
        if not entry:
            continue
        hosts.append(parse_address(entry, f"line {number} of the file of hosts"))
    if not hosts:
        raise ClusterError("the file of hosts names no host")
    if len(set(hosts)) < len(hosts):
        raise ClusterError("the file of hosts names a host twice: give each process a port of its own")
    return tuple(hosts)


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only.

    >>> is_loopback("127.0.0.1"), is_loopback("10.0.0.1"), is_loopback("localhost")
    (True, False, True)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        pass
    try:
        return all(ipaddress.ip_address(info[4][0]).is_loopback for info in socket.getaddrinfo(host, None))
    except OSError as error:
        raise ClusterError(f"the host {host!r} cannot be found: {error}") from None
