"""Running a program on several hosts: one supervisor on each, which start workers and keep an eye on each other.

Supervisors are connected like workers (see `mesh`) and say seven things: that they are alive, that something failed,
what their workers returned, goodbye, with recovery where a life goes on, and questions to workers with their answers
(see `far_questions`). They are never busy, so silence means that a host or the network is gone, not that it works hard.

With recovery a failure ends a life on all hosts: each ends its processes, starts others, and connects again; then host
0 says where they go on, or that this is the end (see `host_lives`).
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, replace
from functools import partial
from typing import NoReturn

import trio

from dataflow.asking.messages import Question
from dataflow.asking.network import ControlAddress
from dataflow.comm.handshake import SUPERVISORS, Identity, Keys
from dataflow.comm.link import Link
from dataflow.comm.pipes import Pipe
from dataflow.errors import ProtocolError, Terminated, WorkerFailed
from dataflow.execute import Main, check_main
from dataflow.launch.control import (
    AGAIN,
    END,
    Alive,
    Farewell,
    HostAnswers,
    HostAsks,
    HostFailed,
    LifeBegins,
    News,
    Results,
)
from dataflow.launch.control_link import ControlLink
from dataflow.launch.elastic import ElasticHost
from dataflow.launch.errand import Errand
from dataflow.launch.far_questions import FarQuestions
from dataflow.launch.guests import GUESTS, dial, welcome_guests
from dataflow.launch.host_lives import ElsewhereFailed, HostLives
from dataflow.launch.hosts import Cluster, Unreachable
from dataflow.launch.mesh import connect_all
from dataflow.launch.neighbours import Connect, Neighbours
from dataflow.launch.orders import Go
from dataflow.launch.printer import Printer
from dataflow.launch.process import Settings
from dataflow.launch.signals import Signals, run_trio
from dataflow.launch.starting import start
from dataflow.launch.supervisor import Crew, end_life, run_processes, supervise, watch_signals
from dataflow.launch.verdict import ByWorker, Verdict
from dataflow.recovery.policy import Recovery
from dataflow.recovery.restarts import one_line
from dataflow.recovery.resume import Resume
from dataflow.run.exceptions import unwrap
from dataflow.run.signal import Signal

_MOMENT = 0.3  # seconds


def run_cluster(
    main: Main,
    args: tuple[object, ...],
    cluster: Cluster,
    settings: Settings,
    recovery: Recovery | None = None,
    name: str | None = None,
    control: ControlAddress | None = None,
    elastic: ElasticHost | None = None,
) -> list[object]:
    """Runs this host's share of a program; returns what main returned on every worker of every host.

    With a `name` the run can be asked things on host 0, where worker 0 is; and at `control`, which is there too.
    `elastic`: who brings more workers.
    """
    check_main(main, cluster.workers)

    async def watch(crew: Crew, settings: Settings) -> ByWorker:
        crew.host = elastic
        return await supervise_host(crew, cluster, settings)

    results = run_processes(
        main,
        args,
        cluster.local,
        cluster.peers,
        settings,
        MeshLinks(cluster, elastic is not None, elastic.cannot_bring if elastic is not None else None),
        watch,
        recovery,
        partial(run_host_lives, cluster, elastic),
        name if cluster.process == 0 else None,
        control=control,
    )
    return [results.get(worker) for worker in range(cluster.peers)]  # a host that has left does not know of others


def run_host_lives(
    cluster: Cluster,
    elastic: ElasticHost | None,
    crew: Crew,
    errand: Errand,
    parcel: int,
    recovery: Recovery,
    signals: Signals,
) -> ByWorker:
    """Runs this host's workers until all hosts' have returned, started afresh as often as host 0 says.

    With `elastic`, a life in which workers came or left is followed by none here: whoever brings workers is told.
    """
    crew.host = elastic
    lives = HostLives(cluster, recovery, lambda line: crew.stderr.put(f"dataflow: {line}\n"))
    settings = errand.settings
    while True:
        start(crew, replace(errand, life=1), parcel, settings.prefix)
        verdict = Verdict(crew.workers)
        live = partial(supervise_host, crew, cluster, settings, lives, verdict)
        try:
            return run_trio(watch_signals, live, signals)
        except (Exception, BaseExceptionGroup) as group:
            error = unwrap(group) if isinstance(group, BaseExceptionGroup) else group
            final = lives.over(error, verdict)
            if final is None and elastic is not None and verdict.scaled and cluster.process == 0:
                elastic.say("again", (), one_line(error))
                raise error from error.__cause__
        end_life(crew, settings)
        if final is not None:
            run_trio(watch_signals, partial(_tell_the_end, cluster, settings, final), signals)
            raise error from error.__cause__


async def _tell_the_end(cluster: Cluster, settings: Settings, final: HostFailed) -> None:
    """The others come back to hear where they go on: nowhere. Those who do not come find out by themselves."""
    with contextlib.suppress(Unreachable):
        pipes = await _connect_supervisors(cluster, settings.patience)
        others = Others(cluster, settings.patience)
        await others.say_at_last(pipes, final)


@dataclass(frozen=True, slots=True)
class MeshLinks:
    """How a worker finds the others: those on its own host by socket pairs, the rest by TCP."""

    cluster: Cluster
    invites: bool = False  # whether workers come from elsewhere if more are wanted
    cannot: str | None = None  # why none can come, if that is so

    def __call__(self, neighbours: Neighbours) -> Connect:
        """A way to connect with all of them."""

        async def connect() -> dict[int, Link]:
            remote = await self._remote(neighbours.index)
            return remote | await neighbours.links()

        return connect

    @property
    def cannot_start(self) -> str | None:
        """Why no worker can be started here that joins; None if some can."""
        if len(self.cluster.hosts) == 1 or self.invites:
            return self.cannot
        name, port = self.cluster.hosts[0]
        return f"on several hosts, start one more: python -m dataflow run ... --join {name}:{port} --secret FILE"

    async def dial(self, index: int, peer: int, address: tuple[str, int]) -> Link:
        """Connects with a worker that joins."""
        cluster = self.cluster
        return await dial(Identity(cluster.secret, GUESTS, index), peer, address, cluster.tls, cluster.wait)

    async def _remote(self, index: int) -> dict[int, Link]:
        cluster = self.cluster
        if index >= cluster.peers:  # it joins, and there are no other hosts
            return {}
        me = Identity(cluster.secret, cluster.digest, index)
        addresses = {peer: cluster.address(peer) for peer in range(cluster.peers) if peer not in cluster.local}
        listen = (cluster.listen, cluster.address(index)[1])
        pipes = await connect_all(me, listen, addresses, cluster.tls, cluster.wait, lambda peer: f"worker {peer}")
        return {peer: Link(pipe, keys, peer) for peer, (pipe, keys) in pipes.items()}


async def _connect_supervisors(
    cluster: Cluster, wait: float, printer: Printer | None = None
) -> dict[int, tuple[Pipe, Keys]]:
    """Connections with the other hosts' supervisors, by host."""
    me = Identity(cluster.secret, cluster.digest, SUPERVISORS + cluster.process)
    port = cluster.hosts[cluster.process][1]
    peers = {SUPERVISORS + i: address for i, address in enumerate(cluster.hosts) if i != cluster.process}
    pipes = await connect_all(
        me,
        (cluster.listen, port),
        peers,
        cluster.tls,
        wait,
        lambda n: cluster.title(n - SUPERVISORS),
        printer,
    )
    return {n - SUPERVISORS: end for n, end in pipes.items()}


async def supervise_host(
    crew: Crew,
    cluster: Cluster,
    settings: Settings,
    lives: HostLives | None = None,
    verdict: Verdict | None = None,
) -> ByWorker:
    """Watches this host's workers and the other hosts' supervisors, until all are done or one fails."""
    others = Others(cluster, settings.patience, END if lives is None else AGAIN, crew)
    crew.may_leave = cluster.process > 0 and lives is None
    verdict = verdict or Verdict(crew.workers)
    results: ByWorker = {}
    done = trio.Event()

    async def watch_workers() -> None:
        try:
            mine = await supervise(crew, settings, verdict)
        except (Exception, BaseExceptionGroup, Terminated) as error:
            cause = unwrap(error) if isinstance(error, BaseExceptionGroup) else error
            if isinstance(cause, trio.Cancelled):  # nothing could be said now, and half a message must not be
                raise
            then = END if lives is None else lives.follows(cause, verdict)
            await others.tell_all(HostFailed(_blame(cause), then), last=True)
            with trio.move_on_after(settings.grace):  # it may have happened before they were connected
                await others.started.wait()
            raise
        results.update(mine)
        await others.tell_all(Results(mine))  # and not what others may have returned by now: they answer for those
        if verdict.left >= set(crew.workers) and (lives is None or crew.host is not None):
            crew.leaving.set()  # nobody comes back to this host
        done.set()

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch_workers)
            pipes = await _connect_supervisors(cluster, cluster.wait, crew.stderr)
            await others.start(nursery, pipes)
            resume = await _begin(crew, others, lives) if lives is not None else None
            if cluster.process == 0:
                nursery.start_soon(_welcome_guests, crew, cluster, resume)
            nursery.start_soon(_leave, crew, others, done, nursery.cancel_scope)
            results.update(await others.results())
            await done.wait()
            await others.say_goodbye()
            nursery.cancel_scope.cancel()
    finally:
        if lives is not None and trio.current_effective_deadline() == -math.inf:
            with trio.CancelScope(shield=True):  # a signal: nobody shall wait for this host to come back
                await others.tell_all(HostFailed(f"{cluster.title(cluster.process)}, was told to end"), last=True)
        await others.close()
    return results


async def _leave(crew: Crew, others: Others, done: trio.Event, scope: trio.CancelScope) -> None:
    """If this host's workers were told to leave: it goes when they are gone, and does not wait for others."""
    await crew.leaving.wait()
    await done.wait()
    await others.tell_all(Farewell(), last=True)
    scope.cancel()


async def _welcome_guests(crew: Crew, cluster: Cluster, resume: Resume | None) -> None:
    """Lets hosts join the workers of this run. `resume`: where this life keeps snapshots."""

    async def ask(question: Question) -> object:
        leader = next(process for process in crew.processes if process.index == 0)
        return await leader.ask(question)

    me = Identity(cluster.secret, GUESTS, SUPERVISORS)
    listen = (cluster.listen, cluster.hosts[0][1])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(welcome_guests, me, listen, cluster.tls, ask, resume, crew.stderr)
        if crew.host is not None:
            nursery.start_soon(crew.host.attend, ask)


async def _begin(crew: Crew, others: Others, lives: HostLives) -> Resume:
    """Host 0 chooses where a life goes on, and all hosts tell their workers."""
    if lives.chooses:
        begins = await lives.choose()
        await others.tell_all(begins)
    else:
        begins = await others.beginning()
    resume = lives.resume(begins)
    go = Go(begins.life, resume.encode())
    for process in crew.processes:
        process.say(go)
    crew.go = Go(begins.life, resume.for_joiner().encode())
    return resume


def _blame(error: BaseException) -> str:
    """What other hosts are told of a failure: one line that names the worker."""
    notes = getattr(error, "__notes__", [])
    text = str(error) if isinstance(error, WorkerFailed) else f"{type(error).__name__}: {error}"
    return f"{text} ({'; '.join(notes)})" if notes else text


class Others:
    """The supervisors of the other hosts."""

    def __init__(self, cluster: Cluster, patience: float, then: str = END, crew: Crew | None = None) -> None:
        """`then`: what follows if one of them is gone. `crew`: who is asked things by host 0, while there is one."""
        self._cluster = cluster
        self._patience = patience
        self._then = then
        self._begins: LifeBegins | None = None
        self._links: dict[int, ControlLink] = {}
        self._unsaid: list[News] = []  # what happened before they were connected
        self._results: ByWorker = {}
        self._done: set[int] = set()
        self._gone: set[int] = set()  # those who have said goodbye
        self._news = Signal()
        self._questions = None if crew is None else FarQuestions(cluster, crew, self.tell_one)
        self.started = trio.Event()  # when they are connected, and have been told what happened before

    async def start(self, nursery: trio.Nursery, pipes: dict[int, tuple[Pipe, Keys]]) -> None:
        """Begins to listen to, and to be heard by, all of them."""
        self._connect(pipes)
        if self._questions is not None:
            self._questions.start(nursery)
        for host, link in self._links.items():
            nursery.start_soon(self._listen, host, link)
        nursery.start_soon(self._beat)
        for message in self._unsaid:
            await self.tell_all(message)
        self.started.set()

    def _connect(self, pipes: dict[int, tuple[Pipe, Keys]]) -> None:
        self._links = {
            host: ControlLink(pipe, keys, self._cluster.workers_of(host)) for host, (pipe, keys) in pipes.items()
        }

    async def tell_all(self, message: News, last: bool = False) -> None:
        """Says something to all of them. One that cannot be told is gone, which its own listener will find out.

        Only what is said `last` is cut short after a while: half a message would make the connection useless.
        """
        if len(self._links) < len(self._cluster.hosts) - 1:
            self._unsaid.append(message)
            return
        with trio.move_on_after(self._patience if last else math.inf):
            for link in self._links.values():
                await link.say(message)

    async def tell_one(self, host: int, message: News) -> None:
        """Says something to one of them."""
        await self._links[host].say(message)

    async def say_at_last(self, pipes: dict[int, tuple[Pipe, Keys]], message: News) -> None:
        """Says one thing, and waits until they have heard it and left."""
        self._connect(pipes)
        await self.tell_all(message, last=True)
        with trio.move_on_after(self._patience), contextlib.suppress(ProtocolError):
            for link in self._links.values():
                while await link.hear() is not None:
                    pass
        await self.close()

    async def results(self) -> ByWorker:
        """Waits until every other host is done; what its workers returned."""
        while len(self._done) < len(self._links):
            await self._news.wait()
        return self._results

    async def beginning(self) -> LifeBegins:
        """Waits until host 0 has said where this life goes on."""
        while self._begins is None:
            await self._news.wait()
        return self._begins

    async def say_goodbye(self) -> None:
        """Says goodbye and waits for theirs: closing a connection with bytes unread may destroy what they were sent."""
        await self.tell_all(Farewell(), last=True)
        with trio.move_on_after(self._patience):
            while len(self._gone) < len(self._links):
                await self._news.wait()

    async def close(self) -> None:
        """Ends the connections."""
        if self._questions is not None:
            self._questions.close()
        for link in self._links.values():
            await link.close()

    async def _beat(self) -> None:
        while True:
            await self.tell_all(Alive())
            await trio.sleep(self._patience / 5)

    async def _listen(self, host: int, link: ControlLink) -> None:
        title = self._cluster.title(host)
        while True:
            try:
                with trio.move_on_after(self._patience) as waiting:
                    news = await link.hear()
            except ProtocolError as error:
                await self._give_up(f"{title}, cannot be understood: {error}")
            if waiting.cancelled_caught:
                await self._give_up(f"{title}, has not answered for {self._patience:g} seconds")
            if news is None:
                if self._then != END:
                    await trio.sleep(_MOMENT)  # it may have gone back because of another, who is about to say so
                await self._give_up(f"{title}, is gone: its connection ended in the middle of the computation")
            if isinstance(news, HostFailed):
                raise ElsewhereFailed(f"{news.why} (reported by {title})", news.then)
            if isinstance(news, LifeBegins):
                self._begins = news
                self._news.set()
            if isinstance(news, HostAsks | HostAnswers) and self._questions is not None:
                if isinstance(news, HostAsks) and host != 0:
                    await self._give_up(f"{title}, asks workers of this host something, which only host 0 does")
                self._questions.heard(host, news)
            if isinstance(news, Results):
                await self._take_results(host, news)
            elif isinstance(news, Farewell):
                self._gone.add(host)
                if self._questions is not None:
                    self._questions.gone(host)
                self._news.set()
                return

    async def _take_results(self, host: int, results: Results) -> None:
        if host in self._done or set(results.by_worker) != set(self._cluster.workers_of(host)):
            title = self._cluster.title(host)
            await self._give_up(f"{title}, sent the results of {len(results.by_worker)} workers, or sent them twice")
        self._results.update(results.by_worker)
        self._done.add(host)
        self._news.set()

    async def _give_up(self, why: str) -> NoReturn:
        """Ends this host because of another, and says so first: the rest must not take us for the one that is gone."""
        await self.tell_all(HostFailed(why, self._then), last=True)
        raise ElsewhereFailed(why, self._then)
