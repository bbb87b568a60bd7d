"""What is said at the socket of a run: a question, and an answer. Plain data, of bounded size, never pickled. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from dataflow.comm import codec
from dataflow.comm.codec import require_list, require_mapping, require_text
from dataflow.errors import DataflowError

VERSION = 1
LONGEST_QUESTION = 1 << 16  # bytes
LONGEST_ANSWER = 1 << 26

Arguments: TypeAlias = Mapping[str, object]


class NoSuchRun(DataflowError):
    """There is no run of that name, or none that answers."""


class Refused(DataflowError):
    """A question that cannot be answered; the message says why."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: the name of the question, and its arguments."""

    name: str
    arguments: Arguments = field(default_factory=dict)


def encode_question(question: Question) -> bytes:
    """As it is sent.

    >>> decode_question(encode_question(Question("save", {"name": "before"})))
    Question(name='save', arguments={'name': 'before'})
    """
    return codec.encode([VERSION, question.name, dict(question.arguments)])


def decode_question(message: bytes) -> Question:
    """What was asked; ValueError if it is no question, Refused if it is one of another version."""
    content = require_list(codec.decode(message))
    if not content or content[0] != VERSION:
        raise Refused(f"this run speaks version {VERSION} of the protocol: use the same version of dataflow as it does")
    _, name, arguments = require_list(content, 3)
    given = require_mapping(arguments)
    return Question(require_text(name), {require_text(key): value for key, value in given.items()})


def encode_answer(value: object) -> bytes:
    """An answer, as it is sent."""
    return codec.encode([VERSION, True, value])


def encode_refusal(why: str) -> bytes:
    """That there is none, and why."""
    return codec.encode([VERSION, False, why])


def decode_answer(message: bytes) -> object:
    """The answer; Refused if there is none, ValueError if it is something else."""
    _, fine, value = require_list(codec.decode(message), 3)
    if fine is True:
        return value
    raise Refused(require_text(value))


def text_of(arguments: Arguments, name: str) -> str:
    """An argument that is text; Refused if it is none."""
    value = arguments.get(name)
    if type(value) is not str:
        raise Refused(f"{name!r} must be text, not {value!r}")
    return value


def seconds_of(arguments: Arguments, name: str, most: float) -> float:
    """An argument that is a positive number of seconds; Refused if it is none."""
    value = arguments.get(name)
    if not isinstance(value, int | float) or not 0 < value <= most:
        raise Refused(f"{name!r} must be a number of seconds, more than 0 and at most {most:g}, not {value!r}")
    return float(value)
