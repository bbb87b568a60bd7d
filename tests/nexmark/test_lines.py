"""The table of lines of code in the documentation is the one that counting gives."""

from pathlib import Path

from nexmark.runs.lines import community_table, lines_of, operator_table, query_table

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "nexmark.md"


def test_the_document_has_the_table() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for table in (query_table(), community_table(), operator_table()):
        assert table in text, f"docs/nexmark.md is to say what python -m nexmark.runs.lines prints:\n{table}"


def example(numbers: list[int]) -> int:
    """A docstring does not count.

    Nor do blank lines.
    """
    # Nor do comments.
    total = 0

    for number in numbers:
        if number:
            total += (
                number
            )  # fmt: skip
    return total


def test_what_a_line_of_code_is() -> None:
    assert lines_of(example) == 8
