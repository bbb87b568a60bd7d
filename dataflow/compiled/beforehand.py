"""Compiled code that a process will need, loaded before anybody waits for it.

A worker that joins holds everybody back from the moment at which it is a member until it has built its dataflows. The
others know what code that takes: they tell it, and it loads that from disk while it listens. Only keys travel: what is
loaded is what this process would have found under them by itself, in a folder that only its user can write to.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dataflow.compiled.ahead import load_ahead
from dataflow.compiled.cache_folder import CacheFolder, Untrusted, open_cache_folder
from dataflow.compiled.entries import Damaged, Entry

if TYPE_CHECKING:
    from dataflow.compiled.numba_inside import Compiled

_used: dict[str, str] = {}  # what this process has loaded or compiled: key, label
_texts: dict[str, tuple[str, str]] = {}  # modules that it has made for folds, by name: of which fold, and their text
_loaded: dict[str, Compiled] = {}  # by key, what nobody has asked for yet
on_text: list[Callable[[str, str, str], None]] = []  # who makes such modules: given a name, a fold's name, a text

_TEXT = "text of "  # what the keys of such texts begin with
POLITE = 5  # how nice the thread is that loads: the others are at work, perhaps on the same processors


def note_used(entry: Entry) -> None:
    """This process uses an entry."""
    _used[entry.key] = entry.label


def note_text(name: str, fold: str, text: str) -> None:
    """This process has made a module."""
    _texts[name] = (fold, text)


def take(key: str) -> Compiled | None:
    """What was loaded under a key; None if nothing was."""
    return _loaded.pop(key, None)


def used() -> list[list[str]]:
    """What this process uses, in the order in which others should load it: keys and labels. Texts are put on disk."""
    texts = [Entry(f"{_TEXT}{name}", name) for name in _texts]
    with open_cache_folder() as folder:
        for entry in texts if folder is not None else ():
            assert folder is not None
            _put(folder, entry)
    return [[entry.key, entry.label] for entry in texts] + [[key, label] for key, label in _used.items()]


def _put(folder: CacheFolder, entry: Entry) -> None:
    fold, text = _texts[entry.label]
    try:
        if entry.read(folder) is None:
            entry.write(folder, f"{fold}\n{text}".encode())
    except (OSError, Damaged, Untrusted):
        return  # then others make it when they need it


def load(wanted: Sequence[Sequence[str]]) -> None:
    """Loads what others use: what is not there, or cannot be used, is left for when it is needed."""
    load_ahead()
    entries = [Entry(key, label) for key, label in wanted if key not in _used]
    with open_cache_folder() as folder:
        for entry in entries if folder is not None else ():
            assert folder is not None
            try:
                content = entry.read(folder)
                if content is not None:
                    _take_in(entry, content)
            except (Damaged, Untrusted):
                continue  # whoever needs it says so


def _take_in(entry: Entry, content: bytes) -> None:
    if entry.key.startswith(_TEXT):
        fold, _, text = content.decode().partition("\n")
        for make in on_text:
            make(entry.label, fold, text)
        return
    from dataflow.compiled.kernel import rebuild  # which needs numba, and so only where there is compiled code

    _loaded[entry.key] = rebuild(content)


def load_politely(wanted: Sequence[Sequence[str]]) -> None:
    """Does so with less claim to the processor than those who work. For a thread that does nothing else."""
    if hasattr(os, "setpriority"):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), POLITE)
    load(wanted)
