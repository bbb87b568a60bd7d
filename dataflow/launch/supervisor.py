"""Runs workers in processes: has them started, prints what they print, collects their results, and ends them.

The supervisor is the process that called `execute`. It runs no dataflow: it is never busy, and so can tell a worker
that is busy from one that is gone. Workers are forked from a process that it starts for them (`starting`, `zygote`).

Whatever happens, `ending.end` runs last: it asks the workers to stop, gives them a moment to run their `finally`
clauses, kills what is left, and reaps every process. If the supervisor itself is killed, the kernel kills the
others.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TypeVar

import trio

from dataflow.asking.door import opened
from dataflow.asking.network import ControlAddress
from dataflow.execute import Main, refuse_inside_a_loop
from dataflow.launch.child import FindLinks, socket_links
from dataflow.launch.descriptors import standard_numbers_taken
from dataflow.launch.ending import end, finish_printing
from dataflow.launch.errand import Errand
from dataflow.launch.lives import Lives
from dataflow.launch.parcel import attempt, packed
from dataflow.launch.process import Settings
from dataflow.launch.recruiting import dismiss, recruit
from dataflow.launch.rolling import Rolling
from dataflow.launch.signals import Signals, run_trio, signals_noted
from dataflow.launch.spawning import Spawned
from dataflow.launch.starting import Crew, start, too_many_files
from dataflow.launch.travel import cannot_travel
from dataflow.launch.verdict import ByWorker, Event, Recruits, Verdict
from dataflow.launch.watching import (
    answer_managers,
    print_output,
    serve_door,
    watch_for_silence,
    watch_process,
    watch_zygote,
)
from dataflow.recovery.beginning import Beginnings
from dataflow.recovery.policy import Recovery
from dataflow.recovery.restarts import Restarts
from dataflow.recovery.resume import require_visible
from dataflow.run.exceptions import unwrap
from dataflow.run.signal import Signal

__all__ = ["Crew", "Settings", "run_processes", "supervise"]

R = TypeVar("R")
Watch = Callable[[Crew, Settings], Awaitable[ByWorker]]
RunLives = Callable[[Crew, Errand, int, Recovery, Signals], ByWorker]


def run_processes(
    main: Main,
    args: tuple[object, ...],
    workers: range,
    peers: int,
    settings: Settings,
    find_links: FindLinks = socket_links,
    watch: Watch | None = None,
    recovery: Recovery | None = None,
    run_lives: RunLives | None = None,
    name: str | None = None,
    joins: bool = False,
    spawned: Spawned | None = None,
    control: ControlAddress | None = None,
) -> ByWorker:
    """Runs workers in processes of their own until all are done; their results, by worker.

    `workers` are the numbers of those to run here, of `peers` in all. `find_links` is how they find each other, and
    `watch` waits for their results in place of `supervise`.
    With `recovery` they are tried again when they fail; `run_lives` is another way to do so. With a `name`, the run can
    be asked things from other processes of this user's on this host, and at `control` by those who know its secret.
    `joins`: they join others, who run elsewhere. `spawned`: a process that is to be the zygote.
    """
    refuse_inside_a_loop()
    if recovery is not None:
        require_visible(recovery)
    crew = Crew(workers, may_leave=joins, spawned=spawned)
    errand = Errand(workers, peers, settings, list(sys.argv), joins)
    results: ByWorker = {}
    failure: BaseException | None = None
    troubles: list[Exception] = []
    with standard_numbers_taken():
        with signals_noted() as signals:
            try:
                with opened(name, peers, control) as crew.door:
                    with ExitStack() as stack:
                        parcel = _pack(stack, main, args, find_links, errand)
                        if recovery is None:
                            start(crew, errand, parcel, settings.prefix)
                        else:
                            results = (run_lives or _run_lives)(crew, errand, parcel, recovery, signals)
                    if recovery is None:
                        signals.on_first = crew.leave
                        results = run_trio(watch_signals, partial(watch or supervise, crew, settings), signals)
            except BaseException as error:
                failure = unwrap(error) if isinstance(error, BaseExceptionGroup) else error
            troubles += end(crew, settings.grace)
            failure = signals.meaning() or failure
        # Whoever has interrupted twice does not wait for those who do not read.
        troubles += finish_printing(crew, settings.grace if signals.impatient else None)
    _raise(failure, troubles)
    return results


def _run_lives(crew: Crew, errand: Errand, parcel: int, recovery: Recovery, signals: Signals) -> ByWorker:
    """Runs workers until they return, started afresh as often as it takes."""
    settings = errand.settings
    restarts = Restarts(recovery.restarts, recovery.window)
    lives = Lives(errand.workers, restarts, settings.patience, settings.grace, recovery.replace)
    beginnings = Beginnings(recovery, errand.peers, lambda line: crew.stderr.put(f"dataflow: {line}\n"))
    while True:
        crew.workers, count = lives.workers, len(lives.workers)
        beginnings.workers = count
        start(crew, replace(errand, workers=lives.workers, peers=count, life=lives.life), parcel, settings.prefix)
        results = run_trio(watch_signals, Rolling(crew, settings, lives, beginnings).run, signals)
        if results is not None:
            return results
        end_life(crew, settings)


def end_life(crew: Crew, settings: Settings) -> None:
    """Ends all processes; others will be started."""
    for trouble in end(crew, settings.grace):
        crew.stderr.put(f"dataflow: while everybody was ended: {type(trouble).__name__}: {trouble}\n")
    crew.zygote, crew.processes = None, []


def _pack(stack: ExitStack, main: Main, args: tuple[object, ...], find_links: FindLinks, errand: Errand) -> int:
    """The descriptor of a parcel with all that workers need; CannotTravel names what cannot be in it."""
    try:
        return stack.enter_context(packed((main, args, find_links)))
    except OSError as error:
        raise too_many_files(error, errand) or error from None  # there is no room for it
    except Exception as error:  # whatever the program's own objects raise
        raise cannot_travel(main, args, error, attempt) from error


def _raise(failure: BaseException | None, troubles: list[Exception]) -> None:
    """Raises what ended the computation; what went wrong when it was ended becomes notes."""
    if failure is None and troubles:
        failure, *troubles = troubles
    if failure is not None:
        for trouble in troubles:
            if trouble is not failure:
                failure.add_note(f"while everybody was ended: {type(trouble).__name__}: {trouble}")
        raise failure from failure.__cause__


async def watch_signals(watch: Callable[[], Awaitable[R]], signals: Signals) -> R:
    """Does something, until a signal interrupts it."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(signals.watch)
        results = await watch()
        nursery.cancel_scope.cancel()
    return results


async def supervise(crew: Crew, settings: Settings, verdict: Verdict | None = None) -> ByWorker:
    """Waits until every worker has returned; raises the verdict if something goes wrong."""
    verdict = verdict or Verdict(crew.workers)
    news = Signal()
    assert crew.zygote is not None

    def tell(event: Event) -> None:
        verdict.handle(event)
        if isinstance(event, Recruits) and event.what == "start":
            for process in recruit(crew, event, settings.prefix):
                if crew.go is not None:
                    process.say(crew.go)
                nursery.start_soon(watch_process, process, tell)
                for output in process.outputs:
                    nursery.start_soon(print_output, output)
        elif isinstance(event, Recruits) and event.what == "dismiss":
            dismiss(crew, event)
        elif isinstance(event, Recruits) and crew.host is not None:
            crew.host.say(event.what, event.workers)
        news.set()

    async with trio.open_nursery() as nursery:
        for printer in (crew.stdout, crew.stderr):
            nursery.start_soon(printer.watch)
        for output in crew.outputs:
            nursery.start_soon(print_output, output)
        for process in crew.processes:
            nursery.start_soon(watch_process, process, tell)
        nursery.start_soon(watch_zygote, crew, crew.zygote, tell)
        nursery.start_soon(watch_for_silence, crew, crew.zygote, settings.patience, tell)
        nursery.start_soon(serve_door, crew)
        nursery.start_soon(answer_managers, crew, settings)
        await reach_verdict(verdict, news, settings)
        nursery.cancel_scope.cancel()
    return verdict.results


async def reach_verdict(verdict: Verdict, news: Signal, settings: Settings) -> None:
    """Returns when all is done; raises the verdict otherwise."""
    while not verdict.complete and verdict.error is None:
        if verdict.suspicious:
            with trio.move_on_after(settings.grace) as waiting:
                await news.wait()
            if waiting.cancelled_caught:
                verdict.give_up_waiting()
        else:
            await news.wait()
    if verdict.error is not None:
        raise verdict.error
