"""The handshake: both ends prove that they know the secret, and agree on what they are. Pure.

    connector -> listener   Greeting: magic, version, cluster, who, whom, nonce
    listener -> connector   Answer: the same, and a proof
    connector -> listener   Proof

A proof is a keyed hash of both greetings and of the role of whoever proves, so neither side can be made to say what
the other should have said, and nothing can be used a second time. All messages have a fixed length: nothing that a
stranger sends is ever parsed further, and nothing is allocated for it. From secret and nonces both sides derive a key
for each direction, with which frames are sealed (see `frames`).

`cluster` is a digest of how many workers there are and where: two processes started with different host files find out
here.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import struct
from dataclasses import dataclass

from dataflow.errors import HandshakeError

VERSION = 3
MAGIC = b"mdf-hello\x00"
_GREETING = struct.Struct("<10sH16sII32s")
_PROOF = 32
GREETING_SIZE = _GREETING.size
ANSWER_SIZE = GREETING_SIZE + _PROOF
PROOF_SIZE = _PROOF


@dataclass(frozen=True, slots=True)
class Keys:
    """One key for each direction."""

    sending: bytes
    receiving: bytes


@dataclass(frozen=True, slots=True)
class Identity:
    """What a party to a handshake knows: the secret, the cluster, and its own number."""

    secret: bytes
    cluster: bytes  # 16 bytes
    number: int


SUPERVISORS = 1 << 20  # added to the number of a host, so that no supervisor takes a worker for one of its own

RUN, ASKER = 1 << 21, (1 << 21) + 1  # at the control address of a run: who answers, and who asks


def party(number: int) -> str:
    """How messages call whoever has that number."""
    if number in (RUN, ASKER):
        return "the run" if number == RUN else "a client"
    return f"host {number - SUPERVISORS}" if number >= SUPERVISORS else f"worker {number}"


def cluster_digest(*parts: object) -> bytes:
    """A fingerprint of what all processes of one computation must have in common."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).digest()


def _mac(secret: bytes, role: bytes, first: bytes, second: bytes) -> bytes:
    key = hashlib.blake2b(secret, digest_size=32).digest()
    return hmac.new(key, role + first + second, hashlib.sha256).digest()


def _greeting(me: Identity, peer: int) -> bytes:
    return _GREETING.pack(MAGIC, VERSION, me.cluster, me.number, peer, secrets.token_bytes(32))


def _check_greeting(greeting: bytes, me: Identity) -> int:
    """Who is greeting; HandshakeError if they do not fit."""
    magic, version, cluster, sender, receiver, _ = _GREETING.unpack(greeting)
    if magic != MAGIC:
        raise HandshakeError("whoever connected does not speak this protocol")
    if version != VERSION:
        raise HandshakeError(f"the peer speaks version {version} of the protocol, and we speak {VERSION}")
    if cluster != me.cluster:
        raise HandshakeError("the peer was started for another computation: compare the host files and --workers")
    if receiver != me.number:
        raise HandshakeError(f"the peer looks for {party(receiver)}, and this is {party(me.number)}")
    return int(sender)


class Connector:
    """The side that connects, to a peer whose number it knows."""

    def __init__(self, me: Identity, peer: int) -> None:
        self._me = me
        self._peer = peer
        self._mine = _greeting(me, peer)

    def greeting(self) -> bytes:
        """The first message."""
        return self._mine

    def finish(self, answer: bytes) -> tuple[bytes, Keys]:
        """The last message and the keys, given the listener's answer (ANSWER_SIZE bytes)."""
        theirs, proof = answer[:GREETING_SIZE], answer[GREETING_SIZE:]
        sender = _check_greeting(theirs, self._me)
        if sender != self._peer:
            raise HandshakeError(f"{party(sender)} answered where {party(self._peer)} should be")
        secret = self._me.secret
        if not hmac.compare_digest(proof, _mac(secret, b"listener", self._mine, theirs)):
            raise HandshakeError(f"{party(sender)} does not know the secret: compare the files of --secret")
        keys = Keys(_mac(secret, b"key 1", self._mine, theirs), _mac(secret, b"key 2", self._mine, theirs))
        return _mac(secret, b"connector", self._mine, theirs), keys


class Listener:
    """The side that waits, and learns from the greeting who connects."""

    def __init__(self, me: Identity) -> None:
        self._me = me
        self._theirs = b""
        self._mine = b""

    def answer(self, greeting: bytes) -> bytes:
        """The answer to a greeting (GREETING_SIZE bytes)."""
        self._theirs = greeting
        self._mine = _greeting(self._me, _check_greeting(greeting, self._me))
        return self._mine + _mac(self._me.secret, b"listener", self._theirs, self._mine)

    def finish(self, proof: bytes) -> tuple[int, Keys]:
        """Who it is, and the keys, given the connector's proof (PROOF_SIZE bytes)."""
        sender = int(_GREETING.unpack(self._theirs)[3])
        secret = self._me.secret
        if not hmac.compare_digest(proof, _mac(secret, b"connector", self._theirs, self._mine)):
            raise HandshakeError(f"whoever calls themselves {party(sender)} does not know the secret")
        keys = Keys(_mac(secret, b"key 2", self._theirs, self._mine), _mac(secret, b"key 1", self._theirs, self._mine))
        return sender, keys
