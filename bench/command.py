"""The command line: ``python -m bench list | run NAME... | figure PAPER-N...``."""

import argparse
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from bench import document, papers, registry
from bench.progress import Display
from bench.registry import Experiment, Experiments
from bench.run import Run
from bench.table import table
from megaphone.harness.provenance import Provenance, check_writable

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130

EXAMPLES = """\
examples:
  python -m bench list                               what there is to run
  python -m bench run machine                        yardsticks: what Python and trio cost on this machine
  python -m bench run machine pipeline --quick       two benchmarks, in under a minute each
  python -m bench run all --json results.json        everything, and the numbers as a file
  python -m bench run nexmark --table nexmark.md     a table for a page, with the command, revision and machine
  python -m bench figure megaphone-13                a figure of a paper, by the paper's own number

Run from the project's root. Progress goes to stderr, the table to stdout. A ratio is value / baseline, both
taken in the same run; trust ratios, not times. Ctrl-C stops, and still shows what was measured.
"""


def main(
    arguments: Sequence[str] | None = None,
    benchmarks: Experiments = registry.benchmarks,
    figures: Experiments = registry.figures,
) -> int:
    """Run the command and return its exit code; the registries are arguments so that tests can bring their own."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = _parser().parse_args(arguments)
    registry.discover()
    if options.command == "list":
        print(_listing(benchmarks, figures))
        return OK
    try:
        experiments = (benchmarks if options.command == "run" else figures).select(options.names)
        for path in filter(None, (options.json, options.table)):
            check_writable(path)
    except registry.Unknown as unknown:
        explain = _unknown_benchmark if options.command == "run" else _unknown_figure
        return _refuse(explain(unknown.name, benchmarks, figures))
    except OSError as error:
        return _refuse(f"cannot write results to {error.filename}: {error.strerror}. Nothing was run.")
    return _measure(experiments, options, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure this project: benchmarks of its parts, and the figures of the papers it implements.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="list | run | figure")
    commands.add_parser("list", help="the benchmarks and figures there are, a line each")

    run = commands.add_parser("run", help="run benchmarks by name, or all of them")
    run.add_argument("names", nargs="+", metavar="NAME", help="a benchmark from the list, or 'all'")
    _add_run_options(run)

    figure = commands.add_parser("figure", help="measure and draw figures of the papers")
    figure.add_argument("names", nargs="+", metavar="PAPER-N", help="such as megaphone-13 or hybmig-5.1; see the list")
    _add_run_options(figure)
    return parser


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quick", action="store_true", help="under a minute each, on less data or with more noise")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write results, machine and revision here")
    parser.add_argument("--table", type=Path, metavar="FILE", help="also write them here as a table in Markdown")
    parser.add_argument(
        "--figures", type=Path, default=Path("figures"), metavar="FOLDER", help="where pictures go (figures/)"
    )


def _listing(benchmarks: Experiments, figures: Experiments) -> str:
    return "\n".join(
        [
            "benchmarks (python -m bench run NAME):",
            _lines(benchmarks),
            "",
            "figures (python -m bench figure PAPER-N):",
            _lines(figures),
            "",
            f"The papers' measured figures, of which {len(figures)} drawn so far:",
            papers.ranges(),
        ]
    )


def _lines(experiments: Experiments) -> str:
    width = max((len(experiment.name) for experiment in experiments), default=0)
    lines = (f"  {experiment.name:<{width}}  {experiment.summary}" for experiment in experiments)
    return "\n".join(lines) or "  none yet"


def _unknown_benchmark(name: str, benchmarks: Experiments, figures: Experiments) -> str:
    if name in figures or papers.subject(name):
        return f"{name} is a figure, not a benchmark: python -m bench figure {name}"
    return f"there is no benchmark called {name!r}. There are:\n{_lines(benchmarks)}\n  or 'all' of them."


def _unknown_figure(name: str, benchmarks: Experiments, figures: Experiments) -> str:
    drawn = f"Drawn so far:\n{_lines(figures)}"
    if subject := papers.subject(name):
        return f"figure {name} ({subject}) is one of the papers', but is not drawn yet. {drawn}"
    if name in benchmarks:
        return f"{name} is a benchmark, not a figure: python -m bench run {name}"
    return f"there is no figure {name!r} that measures something. {drawn}\nThe papers have:\n{papers.ranges()}"


def _refuse(reason: str) -> int:
    print(f"python -m bench: {reason}", file=sys.stderr)
    return USAGE


def _measure(experiments: Sequence[Experiment], options: argparse.Namespace, arguments: Sequence[str]) -> int:
    provenance = Provenance(["python", "-m", "bench", *arguments])
    run = Run(options.quick, Display(sys.stderr), options.figures)
    code = _attempt(experiments, run)
    print(provenance.summary())
    print(table(run.results) if run.results else "nothing was measured")
    for text in run.told:
        print(f"\n{text}")
    for picture in run.pictures:
        print(f"drawn: {picture}")
    if options.json is not None:
        document.write(options.json, provenance, run.results, complete=code == OK)
    if options.table is not None:
        document.write_table(options.table, provenance, run.results, run.told, complete=code == OK)
    return code


def _attempt(experiments: Sequence[Experiment], run: Run) -> int:
    """Run the experiments in turn and return the exit code; what was reported before an interrupt stays in ``run``.

    ``except*`` because trio hands an interrupt, like any exception, out of its nurseries in a group.
    """
    code = OK
    try:
        for experiment in experiments:
            run.begin(experiment.name)
            experiment.body(run)
    except* KeyboardInterrupt:
        print("interrupted; what was measured until then:", file=sys.stderr)
        code = INTERRUPTED
    except* Exception:
        traceback.print_exc()
        print(f"{run.experiment} failed; what was measured until then:", file=sys.stderr)
        code = code or FAILED
    return code
