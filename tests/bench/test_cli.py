"""The command line of ``bench``, as a user meets it."""

import json
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
import trio

from bench.command import main
from bench.registry import Experiments
from bench.run import Run

ROOT = Path(__file__).resolve().parents[2]


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench", *arguments], cwd=ROOT, capture_output=True, text=True, encoding="utf-8"
    )


@pytest.fixture
def benchmarks() -> Experiments:
    """A registry of its own, with one benchmark of each fate."""
    registry = Experiments()

    @registry.register("good", "reports two numbers")
    def good(run: Run) -> None:
        run.report("rows", 6e6, "rows/s", baseline=8e6)
        run.report("wait", 10.0 if run.quick else 1.0, "ms")

    @registry.register("impatient", "is interrupted")
    def impatient(run: Run) -> None:
        run.report("first", 1.0, "ms")
        raise KeyboardInterrupt

    @registry.register("impatient-trio", "is interrupted inside a nursery")
    def impatient_trio(run: Run) -> None:
        async def interrupted() -> None:
            raise KeyboardInterrupt

        async def nursery_of_one() -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(interrupted)

        run.report("first", 1.0, "ms")
        trio.run(nursery_of_one)

    @registry.register("broken", "raises")
    def broken(run: Run) -> None:
        run.report("first", 1.0, "ms")
        raise ZeroDivisionError("the bug of this benchmark")

    return registry


def test_list_names_every_benchmark_and_the_figures_of_every_paper() -> None:
    done = bench("list")
    assert done.returncode == 0
    assert "machine  " in done.stdout
    for paper in ("megaphone-N", "optimal-N", "hybmig-N", "skew-N"):
        assert paper in done.stdout


def test_help_teaches_by_example() -> None:
    done = bench("--help")
    assert done.returncode == 0
    assert "python -m bench run all --json results.json" in done.stdout


def test_a_real_run_prints_a_table_and_writes_json(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    done = bench("run", "machine", "--quick", "--json", str(file))
    assert done.returncode == 0, done.stderr
    document = json.loads(file.read_text(encoding="utf-8"))
    assert set(document) == {"revision", "machine", "command", "started", "complete", "results"}
    assert set(document["machine"]) == {"cpu", "cores", "memory", "python", "platform"}
    assert document["command"] == f"python -m bench run machine --quick --json {file}"
    assert document["complete"] is True
    assert len(document["results"]) == 4
    for result in document["results"]:
        assert set(result) == {"name", "value", "unit", "baseline", "ratio"}
        assert result["value"] > 0
        assert result["name"] in done.stdout


def test_progress_goes_to_stderr_in_few_plain_lines_when_that_is_no_terminal() -> None:
    done = bench("run", "machine", "--quick")
    assert "machine: yardsticks: done in" in done.stderr
    assert "done in" not in done.stdout
    assert "\r" not in done.stderr


def test_ratio_is_value_over_baseline_and_null_without_one(benchmarks: Experiments, tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    assert main(["run", "good", "--json", str(file)], benchmarks) == 0
    rows, wait = json.loads(file.read_text(encoding="utf-8"))["results"]
    assert rows == {"name": "good/rows", "value": 6e6, "unit": "rows/s", "baseline": 8e6, "ratio": 0.75}
    assert wait == {"name": "good/wait", "value": 1.0, "unit": "ms", "baseline": None, "ratio": None}


def test_quick_reaches_the_benchmark(benchmarks: Experiments, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "good", "--quick"], benchmarks) == 0
    assert "good/wait         10  ms" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["impatient", "impatient-trio"])
def test_an_interrupt_shows_and_keeps_what_was_measured(
    name: str, benchmarks: Experiments, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "results.json"
    assert main(["run", name, "good", "--json", str(file)], benchmarks) == 130
    output = capsys.readouterr()
    assert f"{name}/first" in output.out
    assert "good" not in output.out
    assert "interrupted" in output.err
    document = json.loads(file.read_text(encoding="utf-8"))
    assert document["complete"] is False
    assert [result["name"] for result in document["results"]] == [f"{name}/first"]


def test_a_failing_benchmark_is_named_and_the_rest_of_the_numbers_kept(
    benchmarks: Experiments, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "good", "broken"], benchmarks) == 1
    output = capsys.readouterr()
    assert "good/rows" in output.out
    assert "broken/first" in output.out
    assert "the bug of this benchmark" in output.err
    assert "broken failed" in output.err


def test_a_table_for_a_page_says_where_its_numbers_are_from(benchmarks: Experiments, tmp_path: Path) -> None:
    file = tmp_path / "good.md"

    @benchmarks.register("talker", "tells something besides")
    def talker(run: Run) -> None:
        run.report("a|b", 2.0, "ms")
        run.tell("what   it\n----   --\nsaid   so")

    assert main(["run", "good", "talker", "--table", str(file)], benchmarks) == 0
    command, _, provenance, *rest = file.read_text(encoding="utf-8").splitlines()
    assert command == f"`python -m bench run good talker --table {file}`"
    assert re.match(r"\d{4}-\d\d-\d\d, revision \w+", provenance)
    assert rest == [
        "",
        "| name | value | unit | baseline | ratio |",
        "|---|---:|---|---:|---:|",
        "| good/rows | 6,000,000 | rows/s | 8,000,000 | 0.75 |",
        "| good/wait | 1 | ms |  |  |",
        r"| talker/a\|b | 2 | ms |  |  |",
        "",
        "```",
        "what   it",
        "----   --",
        "said   so",
        "```",
    ]


def test_a_table_of_a_run_that_failed_says_so(benchmarks: Experiments, tmp_path: Path) -> None:
    file = tmp_path / "broken.md"
    assert main(["run", "broken", "--table", str(file)], benchmarks) == 1
    text = file.read_text(encoding="utf-8")
    assert "This run did not end well" in text
    assert "| broken/first | 1 | ms |" in text


def test_unknown_benchmark_lists_what_there_is(benchmarks: Experiments, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "good", "nonesuch"], benchmarks) == 2
    output = capsys.readouterr()
    assert "no benchmark called 'nonesuch'" in output.err
    assert "impatient-trio  is interrupted inside a nursery" in output.err
    assert output.out == ""


@pytest.mark.parametrize("figure", ["megaphone-13", "optimal-12", "hybmig-5.1", "skew-9"])
def test_a_papers_figure_that_is_not_drawn_says_so(figure: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["figure", figure], figures=Experiments()) == 2
    assert f"figure {figure} (" in (message := capsys.readouterr().err)
    assert "not drawn yet" in message


@pytest.mark.parametrize("figure", ["megaphone-2", "megaphone-99", "nopaper-1", "megaphone"])
def test_unknown_figure_lists_what_the_papers_have(figure: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["figure", figure], figures=Experiments()) == 2
    message = capsys.readouterr().err
    assert repr(figure) in message
    assert "not drawn yet" not in message
    assert "hybmig-N" in message


def test_a_drawn_figure_runs(capsys: pytest.CaptureFixture[str]) -> None:
    figures = Experiments()
    figures.register("megaphone-13", "hash count")(lambda run: run.report("p99", 7.0, "ms"))
    assert main(["figure", "megaphone-13"], figures=figures) == 0
    assert "megaphone-13/p99" in capsys.readouterr().out


def test_run_and_figure_point_at_each_other(benchmarks: Experiments, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "megaphone-13"], benchmarks) == 2
    assert "python -m bench figure megaphone-13" in capsys.readouterr().err
    assert main(["figure", "good"], benchmarks) == 2
    assert "python -m bench run good" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_refused_before_anything_runs(
    benchmarks: Experiments, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hopeless_files = (tmp_path / "no such folder" / "results.json", tmp_path)
    for option, hopeless in product(("--json", "--table"), hopeless_files):
        assert main(["run", "broken", option, str(hopeless)], benchmarks) == 2
        output = capsys.readouterr()
        assert f"cannot write results to {hopeless}" in output.err
        assert "the bug of this benchmark" not in output.err


@pytest.mark.parametrize("arguments", [[], ["run"], ["figure"], ["nonsense"], ["run", "good", "--nonsense"]])
def test_misuse_of_the_command_line_exits_with_2(arguments: list[str], benchmarks: Experiments) -> None:
    with pytest.raises(SystemExit) as exit:
        main(arguments, benchmarks)
    assert exit.value.code == 2
