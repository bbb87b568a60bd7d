"""What the leader asks of its supervisor: workers that join."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dataflow.comm import codec
from dataflow.members.following import CannotScale


class Recruiter:
    """In the leader's process: `dataflow.members.scaling.Launcher`, and `dataflow.members.invited.Inviter`."""

    def __init__(self, tell: Callable[[bytes], None], cannot: str | None = None) -> None:
        """`cannot`: why none can be started."""
        self._tell = tell
        self._cannot = cannot

    def start(self, numbers: Sequence[int], peers: int) -> None:
        """Has workers started. CannotScale if that cannot be."""
        if self._cannot is not None:
            raise CannotScale(self._cannot)
        self._tell(codec.encode(["more", "start", list(numbers), peers]))

    def invite(self, numbers: Sequence[int]) -> None:
        """Has workers come from elsewhere. CannotScale if that cannot be."""
        if self._cannot is not None:
            raise CannotScale(self._cannot)
        self._tell(codec.encode(["more", "invite", list(numbers), 0]))

    def grown(self, numbers: Sequence[int]) -> None:
        """Those who came from elsewhere are members now."""
        self._tell(codec.encode(["more", "grown", list(numbers), 0]))

    def joined(self, numbers: Sequence[int]) -> None:
        """They are members now."""
        self._tell(codec.encode(["more", "joined", list(numbers), 0]))

    def left(self, numbers: Sequence[int]) -> None:
        """They are none any more."""
        self._tell(codec.encode(["more", "left", list(numbers), 0]))

    def dismiss(self, numbers: Sequence[int]) -> None:
        """Has workers ended that have not joined."""
        self._tell(codec.encode(["more", "dismiss", list(numbers), 0]))
