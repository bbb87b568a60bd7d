"""What is said about compiling, by whom, and how often."""

from __future__ import annotations

import pytest

from dataflow.compiled.telling import Teller, Voice


def compile_some(teller: Teller) -> None:
    for fold in (None, None, "count"):
        with teller.compiling(fold, "~/.cache/x"), teller.compiling(None, "~/.cache/x"):
            pass  # a kernel inside is part of it


@pytest.mark.parametrize(
    ("voice", "lines"), [(Voice(True), 2), (Voice(False), 0), (Voice(True, speaks=False), 0), (None, 0)]
)
def test_compiling_is_said_by_one_voice_on_a_terminal(
    voice: Voice | None, lines: int, capsys: pytest.CaptureFixture[str]
) -> None:
    teller = Teller()
    if voice is not None:
        teller.speak_as(voice)
    compile_some(teller)
    teller.close()
    said = capsys.readouterr().err.splitlines()
    expected = [
        "dataflow: compiling kernels (once: kept in ~/.cache/x)",
        "dataflow: compiled 2 kernels and the fold `count` in 0.0 s",
    ]
    assert said == expected[:lines]


def test_kernels_alone_are_told_of_when_there_is_an_occasion(capsys: pytest.CaptureFixture[str]) -> None:
    teller = Teller()
    teller.speak_as(Voice(True))
    with teller.compiling(None, None):
        pass
    assert capsys.readouterr().err == (
        "dataflow: compiling kernels (every run does it again, since nothing can be kept)\n"
    )
    teller.close()
    assert capsys.readouterr().err == "dataflow: compiled 1 kernel in 0.0 s\n"
    teller.close()
    assert capsys.readouterr().err == ""


def test_a_kernel_that_is_compiled_late_is_not_announced_again(capsys: pytest.CaptureFixture[str]) -> None:
    teller = Teller()
    teller.speak_as(Voice(True))
    compile_some(teller)
    teller.speak_as(Voice(True))  # a worker that goes on where its parent was
    with teller.compiling(None, "~/.cache/x"):
        pass
    compile_some(teller)
    with teller.compiling("sum", "~/.cache/x"):
        pass
    teller.close()
    said = capsys.readouterr().err.splitlines()
    assert [line for line in said if "compiling" in line] == [
        "dataflow: compiling kernels (once: kept in ~/.cache/x)",
        "dataflow: compiling the fold `sum` (once: kept in ~/.cache/x)",
    ]
    assert [line for line in said if "compiled" in line] == [
        "dataflow: compiled 2 kernels and the fold `count` in 0.0 s",
        "dataflow: compiled 3 kernels and the fold `count` in 0.0 s",
        "dataflow: compiled the fold `sum` in 0.0 s",
    ]


def test_what_cannot_be_compiled_is_not_said_to_have_been(capsys: pytest.CaptureFixture[str]) -> None:
    teller = Teller()
    teller.speak_as(Voice(True))
    with pytest.raises(ZeroDivisionError), teller.compiling("wrong", "x"):
        raise ZeroDivisionError
    teller.close()
    assert capsys.readouterr().err == "dataflow: compiling the fold `wrong` (once: kept in x)\n"


def test_a_forked_worker_does_not_go_on_with_its_parents_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    teller = Teller()
    teller.speak_as(Voice(True))
    with teller.compiling(None, "x"):
        teller.speak_as(Voice(True, speaks=False))
        compile_some(teller)
    teller.close()
    assert capsys.readouterr().err == "dataflow: compiling kernels (once: kept in x)\n"


def test_warnings_are_said_once_for_each_subject_and_by_one_for_all(capsys: pytest.CaptureFixture[str]) -> None:
    teller = Teller()
    for _ in range(2):
        teller.warn("a", "first")
        teller.warn("b", "second")
    assert capsys.readouterr().err == "dataflow: first\ndataflow: second\n"
    teller.speak_as(Voice(True, speaks=False))
    teller.warn("c", "third")
    teller.warn("d", "a file that only this worker has found", for_all=False)
    assert capsys.readouterr().err == "dataflow: a file that only this worker has found\n"
