"""Questions to workers on other hosts: host 0, where a run is asked, passes them on to the supervisors there.

Whoever asks may be gone before the question is on its way, and half a message would end the connection; so one task
sends everything, and whoever asks only waits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from math import inf

import trio

from dataflow.asking.messages import Question, Refused, encode_question, encode_refusal
from dataflow.asking.run import worker_unknown
from dataflow.launch.control import HostAnswers, HostAsks
from dataflow.launch.hosts import Cluster
from dataflow.launch.questions import Answered, Questions
from dataflow.launch.starting import Crew

Tell = Callable[[int, HostAsks | HostAnswers], Awaitable[None]]


class FarQuestions:
    """Those of one host, in one life: what it has asked others, if it is host 0, and what it was asked."""

    def __init__(self, cluster: Cluster, crew: Crew, tell: Tell) -> None:
        """`tell` says something to the supervisor of a host."""
        self._cluster = cluster
        self._crew = crew
        self._tell = tell
        self._asked = {host: Questions() for host in range(len(cluster.hosts)) if host != cluster.process}
        self._put, self._take = trio.open_memory_channel[tuple[int, HostAsks | HostAnswers]](inf)

    def start(self, nursery: trio.Nursery) -> None:
        """The hosts are connected. Questions live in the nursery."""
        self._nursery = nursery
        nursery.start_soon(self._send)
        if self._cluster.process == 0:
            self._crew.ask_elsewhere = self._ask

    async def _send(self) -> None:
        async for host, news in self._take:
            await self._tell(host, news)

    def close(self) -> None:
        """The hosts are not connected any more."""
        self._crew.ask_elsewhere = None
        for host in self._asked:
            self.gone(host)

    def gone(self, host: int) -> None:
        """A host answers nothing more."""
        why = f"{self._cluster.title(host)}, has left, or the run is over or begins again"
        self._asked[host].give_up(why, for_good=True)

    async def _ask(self, worker: int, question: Question) -> object:
        """What a worker on another host answers. Refused if it does not."""
        host = next((host for host in self._asked if worker in self._cluster.workers_of(host)), None)
        if host is None:
            raise worker_unknown(worker)
        with self._asked[host].asked() as asked:
            self._put.send_nowait((host, HostAsks(asked.number, worker, encode_question(question))))
            return await asked.wait()

    def heard(self, host: int, news: HostAsks | HostAnswers) -> None:
        """A question or an answer has come from a host."""
        if isinstance(news, HostAnswers):
            self._asked[host].answered(Answered(news.number, news.answer))
        else:
            self._nursery.start_soon(self._answer, host, news)

    async def _answer(self, host: int, asks: HostAsks) -> None:
        try:
            process = next((each for each in self._crew.processes if each.index == asks.worker), None)
            if process is None:
                raise worker_unknown(asks.worker)
            answer = await process.ask_bytes(asks.question)
        except Refused as error:
            answer = encode_refusal(str(error))
        self._put.send_nowait((host, HostAnswers(asks.number, answer)))
