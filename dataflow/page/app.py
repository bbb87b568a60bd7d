"""The addresses of the page. Everything below /api/ wants the token (`guard`)."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path

import trio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from dataflow.asking.answers.migrate import ACTIONS
from dataflow.errors import DataflowError
from dataflow.page import questions
from dataflow.page.feed import Feed
from dataflow.page.guard import Guard

STATIC = Path(__file__).with_name("static")
log = logging.getLogger("dataflow.page")
_LONGEST_BODY = 1 << 16
_SLOWEST_BODY = 5.0  # seconds
_LONGEST_TRACE = 10.0  # seconds

Answering = Callable[[Feed, Request], Awaitable[object]]


class BadAsking(DataflowError):
    """Something that the page asked for and that makes no sense."""


def make_app(feed: Feed, token: str) -> Guard:
    """The whole page, behind its guard."""
    routes = [
        Route("/", lambda _: FileResponse(STATIC / "index.html"), methods=["GET"]),
        Route("/api/live", partial(_live, feed), methods=["GET"]),
        Mount("/static", StaticFiles(directory=STATIC)),
        *(Route(f"/api/{name}", _answering(feed, answer), methods=[method]) for name, method, answer in _KNOWN),
    ]
    return Guard(Starlette(routes=routes), token)


def _answering(feed: Feed, answer: Answering) -> Callable[[Request], Awaitable[Response]]:
    async def respond(request: Request) -> Response:
        try:
            return JSONResponse(await answer(feed, request))
        except (DataflowError, ValueError) as error:  # of the run, or of whoever asks: both are told as they are
            return JSONResponse({"error": str(error)}, status_code=409)

    return respond


async def _live(feed: Feed, request: Request) -> Response:
    async def events() -> AsyncIterator[str]:
        yield ": the page of a dataflow\n\n"
        async with feed.watching() as receive:
            async for text in receive:
                yield text

    return StreamingResponse(events(), media_type="text/event-stream")


async def _holding(feed: Feed, request: Request) -> object:
    return await feed.ask(partial(questions.ask_holding, feed.run))


async def _bins(feed: Feed, request: Request) -> object:
    given = request.query_params
    first, last, cells = (_number(given.get(name, "")) for name in ("first", "last", "cells"))
    return await feed.ask(partial(questions.ask_bins, feed.run, given.get("operator", ""), first, last, cells))


async def _trace(feed: Feed, request: Request) -> object:
    try:
        seconds = float(request.query_params.get("seconds", "1"))
    except ValueError:
        raise BadAsking("a timeline is of a number of seconds") from None
    if not 0 < seconds <= _LONGEST_TRACE:
        raise BadAsking(f"a timeline is of more than 0 and at most {_LONGEST_TRACE:g} seconds")
    return await feed.ask(partial(questions.ask_trace, feed.run, seconds))


async def _loops(feed: Feed, request: Request) -> object:
    return await feed.ask(partial(questions.ask_loops, feed.run))


async def _switch(feed: Feed, request: Request) -> object:
    body = await _body(request)
    switch = {name: body.get(name) for name in ("worker", "loop", "dry")}
    if [type(value) for value in switch.values()] != [int, int, bool]:
        raise BadAsking("a loop is switched by the number of its worker, its own number, and true or false for 'dry'")
    log.info("%s: loop %s of worker %s: dry run %s", feed.run, switch["loop"], switch["worker"], switch["dry"])
    return await feed.ask(partial(questions.ask_loops, feed.run, switch))


async def _migrate(feed: Feed, request: Request) -> object:
    body = await _body(request)
    operator, action, strategy = (_text(body, name) for name in ("operator", "action", "strategy"))
    if action not in ACTIONS:
        raise BadAsking(f"{action!r} is none of {', '.join(ACTIONS)}")
    to = _text({"to": "", **body}, "to")
    if "ranges" in body:
        ranges, source, target = _ranges(body["ranges"]), body.get("source"), body.get("target")
        if type(source) is not int or type(target) is not int:
            raise BadAsking("bins go from a worker to a worker")
        to = await feed.ask(partial(questions.words_for, feed.run, operator, ranges, source, target))
    log.info("%s: %s a migration of %s to %s, %s", feed.run, action, operator, to[:80], strategy)
    return await feed.ask(partial(questions.ask_migrate, feed.run, operator, action, to, strategy))


_KNOWN: tuple[tuple[str, str, Answering], ...] = (
    ("holding", "GET", _holding),
    ("bins", "GET", _bins),
    ("trace", "GET", _trace),
    ("loops", "GET", _loops),
    ("loops", "POST", _switch),
    ("migrate", "POST", _migrate),
)


async def _body(request: Request) -> dict[str, object]:
    """What was sent, if it is an object in JSON and not too long."""
    received = bytearray()
    with trio.move_on_after(_SLOWEST_BODY) as patience:
        async for chunk in request.stream():
            received += chunk
            if len(received) > _LONGEST_BODY:
                raise BadAsking("that is too long")
    if patience.cancelled_caught:
        raise BadAsking(f"the rest did not come within {_SLOWEST_BODY:g} seconds")
    try:
        body = json.loads(received)
    except RecursionError:
        raise BadAsking("that is nested too deeply") from None
    if not isinstance(body, dict):
        raise BadAsking("an object in JSON is expected")
    return body


def _text(body: dict[str, object], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str):
        raise BadAsking(f"{name!r} must be text")
    if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise BadAsking(f"{name!r} has half a letter (a surrogate), and is no text that could be sent on")
    return value


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise BadAsking(f"{text!r} is no number of a bin")
    return int(text)


def _ranges(value: object) -> list[tuple[int, int]]:
    if not isinstance(value, list) or not value:
        raise BadAsking("say which bins shall move")
    found = []
    for each in value:
        if not isinstance(each, list) or len(each) != 2 or not all(type(end) is int and end >= 0 for end in each):
            raise BadAsking("bins are said as ranges: [first, last]")
        found.append((each[0], each[1]))
    return found
