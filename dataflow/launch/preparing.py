"""What a joiner in a process of its own gets ready while it listens: imports, and compiled code."""

from __future__ import annotations

import threading

import trio

from dataflow.comm.codec import require_list
from dataflow.compiled.beforehand import load_politely, used
from dataflow.errors import ProtocolError
from dataflow.members.preparing import Preparation


class CompiledCode(Preparation):
    """Loads what the leader has loaded, in a thread that does not disturb those who work."""

    def used(self) -> object:
        """The keys of compiled code, with labels for people."""
        return used()

    async def load(self, used: object) -> None:
        """Loads that. What raises there is left for when it is needed."""
        wanted = [require_list(pair, 2) for pair in require_list(used)]
        pairs = [[key, label] for key, label in wanted if isinstance(key, str) and isinstance(label, str)]
        if len(pairs) < len(wanted) or any("/" in label for _, label in pairs):
            raise ProtocolError(f"{used!r} where keys of compiled code belong")
        token, over = trio.lowlevel.current_trio_token(), trio.Event()

        def run() -> None:
            try:
                load_politely(pairs)
            finally:
                try:
                    token.run_sync_soon(over.set)
                except trio.RunFinishedError:
                    return  # the run has ended meanwhile

        threading.Thread(target=run, name="preparing", daemon=True).start()  # its own: it stays polite for good
        await over.wait()
