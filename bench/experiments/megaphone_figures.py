"""Figures 1 and 13 to 19 of the Megaphone paper, at the scale of the machine that they are drawn on."""

from __future__ import annotations

from statistics import fmean

from bench.counting import GAP, CountLoad, Setup, measure, told_every
from bench.medians import median_of, spread_of
from bench.registry import figure
from bench.run import Run
from megaphone.harness import Histogram, MeasuredMigration, Outcome, plots
from megaphone.migration.strategies import USUAL

MILLION = 1_000_000
ROW = 8  # bytes of state of a dense key
STRATEGIES = ("all-at-once", "fluid", "batched")
WITHIN = "within 20 ms"
LONGEST_LAST = ("all-at-once", "batched", WITHIN, "fluid")  # one that takes longer than expected delays none after it
CALM = 1.0  # seconds between two migrations, besides what they are expected to take
OVER_TIME = 2.0  # the same in figures over time: a migration of 128 million keys' state takes a second itself
STEP = 0.005  # seconds that a step of a migration is expected to take: if it takes longer, the next ones begin later
SLACK = 0.6  # a share of the time of all migrations, added for those that take longer (8 ms a step were seen)
LONG = 10.0  # seconds: a migration that takes longer is not repeated the other way
ROUNDS = 3  # runs of each setup in Figures 13 to 15, in turns, so that what the machine does meanwhile hits all alike


def _scale(keys: str, rate: int, bins: str, paper: str) -> str:
    """The line under every picture: what was measured, and what the paper measured."""
    return (
        f"Two processes on one machine, {keys} million keys, {rate / MILLION:g} million records/s, {bins}, "
        f"1 ms epochs. {paper}"
    )


def _domain(run: Run, full: int) -> int:
    return full // 8 if run.quick else full


def _ways(setup: Setup, name: str, batch: int, swap: bool) -> tuple[int, float]:
    """How often a strategy moves bins (there and back, or only there if that takes long), and how long each takes."""
    within = max(1, USUAL // (setup.domain * ROW // setup.bins))  # bins of a step that is not split
    bins = setup.bins // 4 * (2 if swap else 1)
    one_by_one = {"fluid", "fluid, gap", "matched", "optimized"}
    steps = 1 if name == "all-at-once" else bins if name in one_by_one else -(-bins // min(batch, within))
    return (1 if steps * STEP > LONG else 2), steps * STEP


def _migrating(
    setup: Setup, rate: int, names: tuple[str, ...], batch: int, calm: float = CALM, swap: bool = False
) -> Outcome:
    """A run in which each strategy moves bins away and then back, with time to calm down in between. `swap`: as many
    bins go the other way."""
    plan, at, slack = [], 1.5, 0.0
    for name in names:
        ways, seconds = _ways(setup, name, batch, swap)
        for _ in range(ways):
            plan.append((at, name))
            at += calm + seconds
            slack += SLACK * seconds
    return measure(setup, CountLoad(rate, at + slack, migrations=tuple(plan), batch=batch, swap=swap))


def _ended(outcome: Outcome) -> list[MeasuredMigration]:
    return [m for m in outcome.migrations if m.episode.seconds is not None and len(m.during)]


def _listed(names: list[str]) -> str:
    """Names in a sentence.

    >>> _listed(["fluid"]), _listed(["fluid", "batched", "matched"])
    ('fluid', 'fluid, batched and matched')
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


@figure("megaphone-1", "latency of all-at-once, fluid, optimized and batched migration, and within 20 ms, over time")
def figure_1(run: Run) -> None:
    million, rate, bins = _domain(run, 64), MILLION, 1 << (8 if run.quick else 10)
    runs = []
    for name in run.each("strategies", ("all-at-once", "fluid", "optimized", "batched", WITHIN)):
        setup = Setup(million * MILLION, bins, dense=True)
        runs.append((name, _migrating(setup, rate, (name,), 16, OVER_TIME, swap=True)))
        _report(run, runs[-1][1], "")
    paper = "Paper: 4 machines, 1000 million keys."
    caption = _scale(
        f"{million}", rate, f"2^{bins.bit_length() - 1} bins, batches of 16 bins, fewer above 8 MiB", paper
    )
    caption += f" Optimized: matched, with a gap of {GAP} epochs. One run each."
    title = "Latency while workers exchange half of their state, and exchange it back (Figure 1)"
    run.draw(plots.timelines(runs, title, caption))


def _report(run: Run, outcome: Outcome, label: str) -> None:
    """Both ways of each strategy."""
    label = f"{label}, " if label else ""
    for migration in _ended(outcome):
        took = migration.episode.seconds or 0.0  # those that ended have one
        run.report(f"{label}{migration.episode.name}: duration", took * 1000, "ms")
        run.report(f"{label}{migration.episode.name}: maximum latency", migration.during.greatest / 1e6, "ms")


def _overhead(run: Run, dense: bool, million: int, title: str, paper: str) -> None:
    rate, seconds, warmup = 2 * MILLION, 3.0, 0.75
    powers = (4, 12, 20) if run.quick else range(4, 21, 2)
    rounds = 1 if run.quick else ROUNDS
    setups = {f"2^{power}": Setup(million * MILLION, 1 << power, dense) for power in powers}
    setups["native"] = Setup(million * MILLION, 0, dense)
    found: dict[str, list[Histogram]] = {name: [] for name in setups}
    unsustained: list[str] = []
    for name in run.each("runs", list(setups) * rounds):
        outcome = measure(setups[name], CountLoad(rate, seconds), warmup)
        found[name].append(outcome.total)
        if not outcome.sustained and name not in unsustained:
            unsustained.append(name)
    families = {name: median_of(runs) for name, runs in found.items()}
    for name, family in families.items():
        for label, quantile in ((".9", 0.9), (".99", 0.99), (".9999", 0.9999), ("max", 1.0)):
            bins = "" if name == "native" else " bins"
            run.report(f"{name}{bins}, {label}, median of {rounds}", family.quantile(quantile) / 1e6, "ms")
    spread = max(spread_of(runs, 0.99) for runs in found.values())
    run.report("the .99 of one setup, largest run over smallest", spread, "times")
    caption = _scale(f"{million}", rate, f"2^{powers[0]} to 2^{powers[-1]} bins", paper)
    caption += " Native: the same count without bins, which cannot migrate."
    caption += " One run each." if rounds == 1 else _medians(rounds, seconds - warmup, spread)
    silent = [name for name, setup in setups.items() if setup.bins and told_every(setup) > seconds]
    if silent:
        caption += (
            f" Workers tell the load of {_listed(silent)} bins less often than a run is long: that cost is not seen."
        )
    if unsustained:
        caption += f" Not sustained, so that true latencies are higher: {_listed(unsustained)}."
    run.draw(plots.ccdf(families, title, caption, ordered=True, reference=("native",), legend="bins"))


def _medians(rounds: int, seconds: float, spread: float) -> str:
    """How a line came about, and how much to make of the distance between two."""
    return (
        f" At each share the median of {rounds} runs of {seconds:g} s, in turns; single runs of one setup differ by up "
        f"to {spread:.1f} times at the slowest 1 %."
    )


@figure("megaphone-13", "hash count: overhead by number of bins")
def figure_13(run: Run) -> None:
    paper = "Paper: 4 machines with 4 workers each, 256 million keys, 4 million records/s."
    _overhead(run, False, _domain(run, 16), "Hash count: latency by number of bins (Figure 13)", paper)


@figure("megaphone-14", "key count: overhead by number of bins")
def figure_14(run: Run) -> None:
    paper = "Paper: 4 machines with 4 workers each, 256 million keys, 4 million records/s."
    _overhead(run, True, _domain(run, 16), "Key count: latency by number of bins (Figure 14)", paper)


@figure("megaphone-15", "key count: overhead by number of bins on a large domain")
def figure_15(run: Run) -> None:
    paper = "Paper: 4 machines with 4 workers each, 8192 million keys, 4 million records/s."
    _overhead(run, True, _domain(run, 128), "Key count on a large domain: latency by number of bins (Figure 15)", paper)


def _tradeoff(run: Run, cases: list[tuple[str, Setup, int]], title: str, caption: str, legend: str) -> None:
    points, missing, single = [], [], []
    for label, setup, batch in run.each(legend, cases):
        outcome = _migrating(setup, MILLION, LONGEST_LAST, batch)
        points += _means(outcome, label)
        _report(run, outcome, label)
        for name in LONGEST_LAST:
            ended = sum(m.episode.name == name for m in _ended(outcome))
            if not ended:
                missing.append(f"{name} at {label}")
            elif ended == 1:
                single.append(f"{name} at {label}")
    caption += " A quarter of the state moves. One run; means of there and back."
    caption += f" In this order, which burdens the first: {_listed(list(LONGEST_LAST))}."
    caption += " Within 20 ms: each step is sized by what the last ones did to the latency."
    if single:
        caption += f" Only there: {_listed(single)}."
    if missing:
        caption += f" Not complete in its time, and not shown: {_listed(missing)}."
    order = (*STRATEGIES, WITHIN)  # a strategy has the same colour everywhere
    points.sort(key=lambda point: order.index(point.strategy))
    run.draw(plots.latency_against_duration(points, title, caption, legend=legend))


def _means(outcome: Outcome, label: str) -> list[plots.Point]:
    """One point for each strategy: there, memory is touched for the first time, and back it often is not."""
    found = plots.points(outcome, label)
    means = []
    for name in dict.fromkeys(point.strategy for point in found):
        mine = [point for point in found if point.strategy == name]
        means.append(plots.Point(name, label, fmean(p.seconds for p in mine), fmean(p.max_latency for p in mine)))
    return means


@figure("megaphone-16", "migration latency against duration, by number of bins")
def figure_16(run: Run) -> None:
    million = _domain(run, 64)
    powers = (4, 8, 12) if run.quick else (4, 6, 8, 10, 12, 14)
    cases = [(f"2^{power}", Setup(million * MILLION, 1 << power, dense=True), 16) for power in powers]
    paper = "Paper: 4096 million keys, 4 million records/s."
    caption = _scale(f"{million}", MILLION, "batches of 16 bins, fewer above 8 MiB", paper)
    _tradeoff(run, cases, "Maximum latency against duration, by number of bins (Figure 16)", caption, "bins")


@figure("megaphone-17", "migration latency against duration, by domain")
def figure_17(run: Run) -> None:
    domains = (4, 8, 16) if run.quick else (8, 16, 32, 64, 128)
    cases = [(f"{domain} million", Setup(domain * MILLION, 4096, dense=True), 64) for domain in domains]
    paper = "Paper: 256 to 8192 million keys, 4 million records/s."
    caption = _scale(
        f"{domains[0]} to {domains[-1]}", MILLION, "2^12 bins, batches of 64 bins, fewer above 8 MiB", paper
    )
    _tradeoff(run, cases, "Maximum latency against duration, by number of keys (Figure 17)", caption, "keys")


@figure("megaphone-18", "migration latency and duration at fixed state per bin")
def figure_18(run: Run) -> None:
    domains = (4, 8, 16) if run.quick else (8, 16, 32, 64, 128)
    cases = [
        (f"{domain} million, 2^{(domain * 16).bit_length() - 1}", Setup(domain * MILLION, domain * 16, dense=True), 16)
        for domain in domains
    ]
    paper = "Paper: 4 million keys per bin, 256 to 32,000 million keys."
    caption = _scale(
        f"{domains[0]} to {domains[-1]}", MILLION, "62,500 keys per bin, batches of 16 bins, fewer above 8 MiB", paper
    )
    title = "Maximum latency against duration, at fixed state per bin (Figure 18)"
    _tradeoff(run, cases, title, caption, "keys and bins")


@figure("megaphone-19", "memory of each process while state moves")
def figure_19(run: Run) -> None:
    million, rate, bins = _domain(run, 128), MILLION, 4096
    panels = {}
    for name in run.each("strategies", STRATEGIES):
        outcome = _migrating(Setup(million * MILLION, bins, dense=True), rate, (name,), 64, OVER_TIME)
        panels[name] = outcome
        for worker, what in ((0, "sends, then receives"), (1, "receives, then sends")):
            peak = max(outcome.memory[worker][1])
            run.report(f"{name}, worker {worker} ({what}): peak", peak / (1 << 20), "MiB")
    paper = "Paper: 16,000 million keys, 35 GiB a process; all-at-once added 30 GiB."
    caption = _scale(f"{million}", rate, "2^12 bins, batches of 64 bins, fewer above 8 MiB", paper) + " One run each."
    caption += " Up to 128 MiB of what has left stays ready for ten seconds."
    title = "Memory while a quarter of the state moves, and moves back (Figure 19)"
    run.draw(plots.memory_panels(list(panels.items()), title, caption))
