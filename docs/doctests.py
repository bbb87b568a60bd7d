"""For mkdocstrings: examples in docstrings (`>>>`) are shown as code."""

from __future__ import annotations

from typing import Any

import griffe


class Doctests(griffe.Extension):
    """Puts a fence around each paragraph of a docstring that begins with a prompt."""

    def on_object(self, *, obj: griffe.Object, **others: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """The text with its examples as blocks of code."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(_shown(paragraph) for paragraph in paragraphs)


def _shown(paragraph: str) -> str:
    lines = paragraph.split("\n")
    begins = next((place for place, line in enumerate(lines) if line.startswith(">>> ")), None)
    if begins is None:
        return paragraph
    return "\n".join([*lines[:begins], "", "```pycon", *lines[begins:], "```"])
