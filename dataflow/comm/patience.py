"""Whether to look for messages for a while before sleeping. Pure: whoever asks says what time it is.

A process that sleeps between two messages pays for it twice: the kernel has to wake it, and everything it then does
runs two to three times slower than before, on a core that has turned to other things. Where the answer comes within
a fraction of a millisecond, looking for it again and again costs less than sleeping, in time and in work. Where it
does not, looking is a waste. So we look only after a few waits that were all short, and each time that was in vain
makes us ask for more of them before we look again (as hypervisors do before they halt a processor).
"""

from __future__ import annotations

SHORT = 500e-6  # a wait of at most so many seconds, asleep, would have been shorter awake
LONGEST = 200e-6  # how long we look before we sleep after all
_FEW = 4  # short waits before we look
_MANY = 256


class Patience:
    """One worker's. All that is wasted is LONGEST for each `few` short waits. Each operation costs O(1).

    >>> patience = Patience(few=2)
    >>> for start in range(2):
    ...     assert not patience.begin(start)
    ...     patience.arrived(start + SHORT / 2)
    >>> patience.begin(2), patience.look() == 2 + LONGEST
    (True, True)
    """

    def __init__(self, few: int = _FEW) -> None:
        self._few = few
        self._required = few  # short waits in a row
        self._short = 0  # the short waits since the last that was long, or in vain
        self._since = -1.0  # when the wait began that is not over yet
        self._looking = False  # whether somebody looks, and does not sleep

    def begin(self, now: float) -> bool:
        """Somebody has nothing to do but wait. Whether looking for messages may be worth it."""
        self._since = now
        self._looking = False
        return self._short >= self._required

    def look(self) -> float:
        """Somebody begins to look for messages, and should do so until the time returned."""
        self._looking = True
        return self._since + LONGEST

    def arrived(self, now: float) -> None:
        """Messages have arrived, whether we looked for them or slept."""
        if self._since < 0:
            return
        waited, self._since = now - self._since, -1.0
        if waited <= SHORT:
            self._short += 1
            if self._looking:
                self._required = self._few  # it paid off
        elif self._looking:
            self.in_vain()  # others had the processor meanwhile: we should have left it to them at once
        else:
            self._short = 0

    def in_vain(self) -> None:
        """We looked for as long as we were told to, and nothing came."""
        self._short = 0
        self._required = min(2 * self._required, _MANY)
        self._since = -1.0
