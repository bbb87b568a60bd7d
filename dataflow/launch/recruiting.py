"""Workers that join: what a supervisor does when the leader asks for them (`wishes`)."""

from __future__ import annotations

import contextlib
import socket

from dataflow.launch.errand import More
from dataflow.launch.framing import frame
from dataflow.launch.process import Process
from dataflow.launch.starting import Crew, send_ends
from dataflow.launch.verdict import Recruits


def recruit(crew: Crew, wanted: Recruits, prefix: bool) -> list[Process]:
    """Has workers started, which join those that run."""
    assert crew.zygote is not None
    before = len(crew.processes)
    more = More(wanted.workers, wanted.peers)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it has ended: whoever listens will say so
        control: socket.socket = crew.zygote.control
        control.sendall(frame(more.encode()))
        send_ends(crew, control, more.joiners, prefix)
    return crew.processes[before:]


def dismiss(crew: Crew, wanted: Recruits) -> None:
    """Ends workers that have not joined."""
    for process in crew.processes:
        if process.index in wanted.workers:
            process.stop()
