"""What a run has shown, from what its workers recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from megaphone.harness.episodes import Episode, merged
from megaphone.harness.histogram import Histogram
from megaphone.harness.lateness import Since, tally
from megaphone.harness.recording import Recording, completions, episodes_of
from megaphone.harness.schedule import SECOND, Ints, LoadSchedule
from megaphone.harness.tables import duration, label, number, table
from megaphone.harness.timeline import QUANTILES, Timeline

SUMMARY = (0.5, 0.9, 0.99, 0.9999, 1)
PHASES = ("before", "during", "after")


@dataclass(frozen=True)
class MeasuredMigration:
    """An episode, and the latencies of the records around it.

    `during`: records that were due before it ended and complete after it began. `before`: those that were complete by
    then, since the last episode (or the warm-up). `after`: those that were due later, until the next episode.
    """

    episode: Episode
    before: Histogram
    during: Histogram
    after: Histogram


@dataclass(frozen=True)
class Outcome:
    """A run: all its workers together. Latencies are of records, in nanoseconds."""

    schedule: LoadSchedule
    warmup: float  # seconds at the start that count only for the timeline
    total: Histogram  # all records after the warm-up
    timeline: Timeline
    migrations: list[MeasuredMigration]
    memory: dict[int, tuple[list[float], list[int]]]  # by worker: seconds and bytes
    complete: int  # epochs, on every worker
    lag: float  # seconds that the completion of all that was due by the end took beyond it
    gave_up: float | None  # seconds since the start, if epochs were still missing
    unsent: int  # epochs that some worker never sent
    since: Since  # from when on a record is charged
    stolen: float  # seconds that the host kept processors from running, of the host that lost most

    @classmethod
    def of(
        cls,
        recordings: Sequence[Recording],
        *,
        warmup: float = 0.0,
        window: float = 0.25,
        since: Since = "due",
        bits: int = 7,
    ) -> Outcome:
        """The outcome of a run, from every worker's recording: what `dataflow.execute` returned.

        `warmup` seconds count for the timeline only, which has a point for each `window` seconds. A record's latency
        is from when it was due; `since="epoch end"` leaves out its wait for the end of its epoch, when it was to be
        sent.
        """
        schedule = _checked_schedule(recordings, warmup)
        first = -(-round(warmup * SECOND) // schedule.epoch_ns)
        total, timeline = Histogram(bits), Timeline(round(window * SECOND), bits)
        episodes = merged([episodes_of(recording) for recording in recordings])
        migrations = [MeasuredMigration(episode, *(Histogram(bits) for _ in PHASES)) for episode in episodes]
        logs = {recording["worker"]: completions(recording) for recording in recordings}
        for worker, (done, _) in logs.items():
            ranges = [*timeline.ranges(schedule), (first, schedule.epochs, total)]
            tally(schedule, worker, done, ranges + _phases(schedule, migrations, first, done), since)
        gave_up = [recording["gave_up"] for recording in recordings if recording["gave_up"] is not None]
        return cls(
            schedule=schedule,
            warmup=warmup,
            total=total,
            timeline=timeline,
            migrations=migrations,
            memory={
                recording["worker"]: ([at / SECOND for at in recording["memory_at"]], recording["memory"])
                for recording in recordings
            },
            complete=min(complete for _, complete in logs.values()),
            lag=max(0, max(int(done[-1]) for done, _ in logs.values()) - schedule.length_ns) / SECOND,
            gave_up=max(gave_up) / SECOND if gave_up else None,
            unsent=schedule.epochs - min(recording["sent"] for recording in recordings),
            since=since,
            stolen=max(recording["stolen"] for recording in recordings) / SECOND,
        )

    @property
    def sustained(self) -> bool:
        """Whether everything was complete before the grace was over."""
        return self.gave_up is None

    @property
    def latency(self) -> str:
        """What a latency is here, for headings and axes."""
        return "latency in ms" if self.since == "due" else "latency from the epoch's end in ms"

    @property
    def statement(self) -> str:
        """One sentence: whether the rate was sustained."""
        offered = f"{number(float(self.schedule.rate))} records/s for {duration(self.schedule.length_ns / SECOND)}"
        if self.gave_up is None:
            last = f"the last record was complete {duration(self.lag)} after the end"
            return f"{offered} were sustained: {last}{self._stall}"
        records = self.schedule.first_record(self.complete)
        missing = self.schedule.records - records
        return (
            f"{offered} were NOT sustained: after {duration(self.gave_up)} {number(missing)} of "
            f"{number(self.schedule.records)} records were not complete ({number(records / self.gave_up)} records/s "
            f"were). They are charged with the time until then, so the true latencies are higher{self._stall}"
        )

    @property
    def _stall(self) -> str:
        """What the host withheld, for the statement: some stalls are its own."""
        return f". The host withheld {duration(self.stolen)} of processor time" if self.stolen else ""

    def summary(self) -> str:
        """The statement, and a table of latencies in ms: of the whole run, and around each migration."""
        headings, *rows = self.latencies()
        return f"{self.statement}.\n{table(headings, rows)}"

    def latencies(self) -> list[list[str]]:
        """That table: a row of headings, then one for the whole run and three for each migration."""
        rows = [[self.latency, "took", *(label(q) for q in SUMMARY), "records"]]
        rows.append(["all after the warm-up" if self.warmup else "all", "", *_cells(self.total)])
        for place, migration in enumerate(self.migrations, 1):
            seconds = migration.episode.seconds
            took = "not ended" if seconds is None else duration(seconds)
            for phase in PHASES:
                name = f"{place}. {migration.episode.name}: {phase}"
                rows.append([name, took if phase == "during" else "", *_cells(getattr(migration, phase))])
        return rows

    def document(self) -> dict[str, object]:
        """All of it for a JSON file. Latencies are in ms, times in seconds since the start, memory in bytes."""
        return {
            "schedule": self.schedule.to_dict(),
            "records": self.schedule.records,
            "sustained": self.sustained,
            "statement": self.statement,
            "lag_s": self.lag,
            "stolen_s": self.stolen,
            "warmup_s": self.warmup,
            "latency_since": self.since,
            "latency_ms": _quantiles(self.total),
            "histogram_ns": self.total.to_dict(),
            "timeline": {
                "window_s": self.timeline.window_ns / SECOND,
                "columns": ["time_s", *(f"{label(q)}_ms" for q in QUANTILES)],
                "rows": [[at, *(value / 1e6 for value in values)] for at, values in self.timeline.rows()],
            },
            "migrations": [_migration_entry(migration) for migration in self.migrations],
            "memory": {
                str(worker): {"time_s": times, "bytes": sizes} for worker, (times, sizes) in self.memory.items()
            },
        }


def _checked_schedule(recordings: Sequence[Recording], warmup: float) -> LoadSchedule:
    if not recordings:
        raise ValueError("an outcome needs the recordings of all workers, and there are none")
    first = recordings[0]["schedule"]
    if any(recording["schedule"] != first for recording in recordings):
        raise ValueError("recordings of different schedules are different runs: they cannot be put together")
    schedule = LoadSchedule.from_dict(first)
    if sorted(recording["worker"] for recording in recordings) != list(range(schedule.workers)):
        raise ValueError(f"an outcome needs one recording of each of the {schedule.workers} workers")
    if not 0 <= warmup * SECOND < schedule.length_ns:
        raise ValueError(f"a warm-up of {warmup} s leaves nothing of a run of {schedule.length_ns / SECOND} s")
    return schedule


def _phases(
    schedule: LoadSchedule, migrations: list[MeasuredMigration], first: int, done: Ints
) -> list[tuple[int, int, Histogram]]:
    """For a worker whose epochs were complete at `done`, which of them are before, during and after each migration."""
    ranges = []
    for place, migration in enumerate(migrations):
        last = migrations[place - 1].episode.end if place else None
        following = migrations[place + 1].episode.begin if place + 1 < len(migrations) else None
        cuts = _cuts(schedule, migration.episode, max(first, _due_from(schedule, last, 0)), following, done)
        ranges += list(zip(cuts, cuts[1:], (migration.before, migration.during, migration.after), strict=False))
    return ranges


def _cuts(schedule: LoadSchedule, episode: Episode, first: int, following: int | None, done: Ints) -> list[int]:
    """The epochs at which before, during and after begin, and after ends; `done` only ever grows."""
    begin = max(first, int(np.searchsorted(done, episode.begin, side="right")))
    end = max(begin, _due_from(schedule, episode.end, schedule.epochs))
    until = schedule.epochs if following is None else int(np.searchsorted(done, following, side="right"))
    return [first, begin, end, max(end, until)]


def _due_from(schedule: LoadSchedule, instant: int | None, otherwise: int) -> int:
    """The first epoch that begins at an instant or later."""
    return otherwise if instant is None else min(schedule.epochs, -(-instant // schedule.epoch_ns))


def _cells(histogram: Histogram) -> list[str]:
    if not len(histogram):
        return ["-"] * len(SUMMARY) + ["0"]
    return [*(number(value / 1e6) for value in histogram.quantiles(SUMMARY)), f"{len(histogram):,}"]


def _quantiles(histogram: Histogram) -> dict[str, float | None]:
    some = len(histogram) > 0
    values = histogram.quantiles(SUMMARY)
    return {label(q): value / 1e6 if some else None for q, value in zip(SUMMARY, values, strict=True)}


def _migration_entry(migration: MeasuredMigration) -> dict[str, object]:
    episode = migration.episode
    return {
        "strategy": episode.name,
        "begin_s": episode.begin / SECOND,
        "end_s": None if episode.end is None else episode.end / SECOND,
        "duration_s": episode.seconds,
        **{f"{phase}_ms": _quantiles(getattr(migration, phase)) for phase in PHASES},
        **{f"{phase}_records": len(getattr(migration, phase)) for phase in PHASES},
    }
