"""A Jupyter kernel, asked as a notebook asks it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PATIENCE = 120.0  # seconds for a cell


@dataclass
class Output:
    """What a cell gave."""

    text: str = ""  # printed
    result: dict[str, Any] = field(default_factory=dict)  # by the kind of data
    displayed: list[dict[str, Any]] = field(default_factory=list)
    error: str = ""  # its traceback, without colours
    comms: list[dict[str, Any]] = field(default_factory=list)  # widgets that it has made


class Kernel:
    """Runs cells, one after the other."""

    def __init__(self, client: Any, manager: Any) -> None:
        self._client = client
        self._manager = manager
        self.models: dict[str, dict[str, Any]] = {}  # of widgets, by comm: their state as a page would know it

    def begin(self, code: str) -> str:
        """Starts a cell."""
        identity: str = self._client.execute(code)
        return identity

    def finish(self, identity: str) -> Output:
        """What a cell gives until it has ended."""
        output = Output()
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            message = self._client.get_iopub_msg(timeout=PATIENCE)
            self._note_widgets(message)
            if message["parent_header"].get("msg_id") != identity:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                output.text += content["text"]
            elif kind == "execute_result":
                output.result = content["data"]
            elif kind == "display_data":
                output.displayed.append(content["data"])
            elif kind == "error":
                output.error = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(content["traceback"]))
            elif kind == "comm_open":
                output.comms.append(content)
            elif kind == "status" and content["execution_state"] == "idle":
                return output
        raise AssertionError("the cell has not ended")

    def run(self, code: str) -> Output:
        """Runs a cell."""
        return self.finish(self.begin(code))

    def interrupt(self) -> None:
        """As the button of a notebook does."""
        self._manager.interrupt_kernel()

    def _note_widgets(self, message: Any) -> None:
        content = message["content"]
        if message["msg_type"] == "comm_open":
            self.models[content["comm_id"]] = dict(content["data"].get("state", {}))
        elif message["msg_type"] == "comm_msg" and content["data"].get("method") == "update":
            self.models.setdefault(content["comm_id"], {}).update(content["data"].get("state", {}))

    def widget(self, kind: str) -> str:
        """The last widget of a kind."""
        return [comm for comm, state in self.models.items() if state.get("_model_name") == kind][-1]

    def click(self, comm: str) -> None:
        """Clicks on a button."""
        content = {"comm_id": comm, "data": {"method": "custom", "content": {"event": "click"}}}
        self._client.shell_channel.send(self._client.session.msg("comm_msg", content))


@contextmanager
def started() -> Iterator[Kernel]:
    """A kernel until the end of the block."""
    from jupyter_client.manager import start_new_kernel

    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "", "JUPYTER_PLATFORM_DIRS": "1"}
    manager, client = start_new_kernel(kernel_name="python3", env=environment, startup_timeout=PATIENCE)
    try:
        yield Kernel(client, manager)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
