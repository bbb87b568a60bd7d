"""Which measured figures the papers have, so that asking for one not drawn yet gets a better answer than 'unknown'.

Names are PAPER-N with the paper's own number. ``optimal`` is counted as in the live-migration version of that paper.
Figures that show a mechanism or an algorithm measure nothing, and are not here.
"""

MEASURED: dict[str, dict[str, str]] = {
    "megaphone": {
        "1": "latency of all-at-once, fluid and optimized migration",
        **{str(4 + query): f"NEXMark Q{query}, latency over time" for query in range(1, 9)},
        "13": "hash count, overhead by number of bins",
        "14": "key count, overhead by number of bins",
        "15": "key count, overhead on a large domain",
        "16": "migration latency against duration, by number of bins",
        "17": "migration latency against duration, by domain",
        "18": "migration latency and duration at fixed state per bin",
        "19": "memory per process during migration",
    },
    "optimal": {
        "11": "the live migration mechanism against its rivals",
        "12": "migration cost by load-balancing factor",
        "13": "running time of SSM by load-balancing factor",
        "14": "running time of PMC by load-balancing factor",
        "15": "single-step migration by number of tasks",
        "16": "response time by window size",
        "17": "discount factor of the MTM",
    },
    "hybmig": {
        "5.1": "output rate over time",
        "5.2": "overhead over time",
        "5.3": "overhead by window",
        "5.4": "overhead by stream rate",
        "5.5": "overhead by number of streams",
        "5.6": "effect of sharing sub-queries",
        "5.7": "effect of background state computation",
        "5.8": "the generalized strategies GMS, GPT and GHM",
    },
    "skew": {
        "7": "imbalance under hashing",
        "8": "plan generation and migration cost by number of task instances",
        "9": "plan generation and migration cost by balance tolerance",
        "10": "plan generation and migration cost by key domain",
        "11": "degree of discretization",
        "12": "scheduling and migration cost by frequency of change",
        "13": "throughput and latency by frequency of change",
        "14": "throughput and latency by balance tolerance",
        "15": "throughput during scale-out",
        "16": "TPC-H Q5 under changing distributions",
        "17": "migration cost by routing table bound",
        "18": "routing table size by number of adjustments",
        "19": "migration cost by window size",
        "20": "routing table size by the weight β",
        "21": "migration cost by the weight β",
    },
}


def subject(name: str) -> str | None:
    """What the figure of this name shows, or None if no paper measures one of that number.

    >>> subject("megaphone-12")
    'NEXMark Q8, latency over time'
    >>> subject("megaphone-3") is None
    True
    """
    paper, _, figure = name.partition("-")
    return MEASURED.get(paper, {}).get(figure)


def ranges() -> str:
    """All measured figures, a line per paper.

    >>> print(ranges().splitlines()[2])
      hybmig-N     N = 5.1, 5.2, 5.3, 5.4, 5.5, 5.6, 5.7, 5.8
    """
    return "\n".join(f"  {paper + '-N':<12} N = {', '.join(figures)}" for paper, figures in MEASURED.items())
