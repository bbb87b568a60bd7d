"""What is said about connections that were turned away: enough to find out, never so much that it does harm. Pure."""

from __future__ import annotations

from dataflow.text import plain

_EACH = 3  # different lines about one address, before they are only counted
_ADDRESSES = 64  # that are told apart; whoever comes after that is one of the others
_OTHERS = "other addresses"


class Strangers:
    """Decides which connections are worth a line: for each address the first few reasons, and then the 100th, the
    1000th and so on. Whatever strangers do, that is some hundred lines, and memory for 64 addresses.

    >>> strangers = Strangers()
    >>> strangers.turned_away("10.0.0.9", "it has another secret")
    'turned away a connection from 10.0.0.9: it has another secret'
    >>> strangers.turned_away("10.0.0.9", "it has another secret")
    >>> strangers.summary()
    ['turned away 2 connections from 10.0.0.9']
    """

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}  # by address
        self._told: dict[str, set[str]] = {}  # by address, the reasons that were told
        self._untold: set[str] = set()  # addresses about which the last line does not say all

    def turned_away(self, address: str, reason: str) -> str | None:
        """The line to print about a connection, if any."""
        if address not in self._counts and len(self._counts) >= _ADDRESSES:
            address = _OTHERS
        count = self._counts[address] = self._counts.get(address, 0) + 1
        told = self._told.setdefault(address, set())
        reason = plain(reason, 500)
        if reason not in told and len(told) < _EACH:
            told.add(reason)
            return f"turned away a connection from {address}: {reason}"
        if count >= 100 and str(count).strip("0") == "1":
            self._untold.discard(address)
            return f"turned away {count:,} connections from {address} so far, the last one: {reason}"
        self._untold.add(address)
        return None

    def summary(self) -> list[str]:
        """What is left to say when nobody listens any more."""
        untold, self._untold = sorted(self._untold), set()
        return [f"turned away {self._counts[address]:,} connections from {address}" for address in untold]
