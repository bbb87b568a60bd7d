"""Gathering: a worker looks at once at everything that the others of its host have written for it (see `hall`).

What comes out of a ring was written after what stood on the same worker's board at that time: so the heads of rings are
looked at first, then the boards, and boards are read first. A writer announces its board before it writes into rings,
and writes nothing into them while its board is full. So whatever two workers say to each other pairwise (records,
acknowledgements, changes of the membership) comes after everything that the sender said to all before it; what is said
to all may overtake it. docs/internals/transport.md has the argument why that is enough.

A worker that is about to sleep says that it wants to be woken, and then looks once more; whoever has written something
looks afterwards who wants to be woken. The first of them rings the bell, the others need not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from struct import pack_into
from typing import Protocol

from dataflow.comm.board import WORDS, Board, BoardReader
from dataflow.comm.frames import Frame
from dataflow.comm.hall import WEAK, fence
from dataflow.comm.link import Link
from dataflow.comm.messages import AnyMessage, Hello, Progress
from dataflow.comm.ring import RingPipe
from dataflow.comm.wire import decode_messages, encode_messages
from dataflow.errors import ProtocolError
from dataflow.run.interest import EVERYTHING

_EMPTY = memoryview(b"")


class Hearer(Protocol):
    """Who is told what was gathered."""

    def hear_changes(self, senders: list[int], dataflow: int, words: list[int], start: int, stop: int) -> None:
        """Progress that some workers have made, the same each: words from `start` to `stop`, four for each change."""

    def hear_letter(self, letter: Hello | Progress) -> None:
        """Another worker has built a dataflow, or has made progress that took a letter."""

    def hear_messages(self, messages: list[AnyMessage]) -> None:
        """Messages of one worker, in their order."""


class _Neighbour:
    """Another worker of this host."""

    __slots__ = ("link", "peer", "pipe", "reader", "slot")

    def __init__(self, link: Link, pipe: RingPipe) -> None:
        self.link = link
        self.peer = link.peer
        self.pipe = pipe
        self.slot = pipe.slot
        self.reader = BoardReader(pipe.hall, pipe.slot, f"worker {link.peer}")


class Gathering:
    """One worker's: its own board, and all that it reads. A look costs O(1) while there is nothing new."""

    def __init__(self, links: Mapping[Link, RingPipe], hearer: Hearer) -> None:
        """`links`: those that lead through rings, of which there is one at least."""
        self._neighbours = {pipe.slot: _Neighbour(link, pipe) for link, pipe in links.items()}
        self.peers = {neighbour.peer: neighbour for neighbour in self._neighbours.values()}
        self._hall = hall = next(iter(links.values())).hall
        self._hearer = hearer
        self._me = hall.slot
        self.board = Board(hall, self._neighbours)
        self._wrote = False  # whether this worker has written on its board, and not looked at the others' since
        self._looked = False  # whether it has looked, and has not drawn its conclusions
        self.outsiders = False  # whether some workers have no board here: those of other hosts, and who has joined. The
        # last one who writes may not have heard of them, and see nothing move: so all are woken for whatever is written
        self._urgent = False  # whether something is not announced yet for which all are to be woken
        self._seen_counts = bytearray(2 * hall.slots * 8)
        self._seen_heads = bytes(hall.slots * 8)
        self._silent = bytes(hall.slots * 8)  # the bells, if nobody wants to be woken
        for link in links:
            link.gate = self.board

    # Saying

    def says(self, message: AnyMessage) -> bool:
        """Writes a message on the board, if that is where it belongs."""
        if type(message) is Progress:
            if not self.board.post_changes(message.dataflow, message.batch.changes):
                self._post_letter(message)
            return True
        if type(message) is Hello:
            self._post_letter(message)
            self._urgent = True
            return True
        return False

    def _post_letter(self, message: AnyMessage) -> None:
        header, buffers = encode_messages([message])
        assert not buffers
        self.board.post_letter(header)

    def flush(self, links: Collection[Link]) -> bool:
        """Lets others see what was said, and wakes those who want it. Whether the links could be flushed."""
        board = self.board
        told = board.announce()
        full = board.full
        if told:  # what this worker has written itself is no news
            self._wrote = True
            pack_into("=q", self._seen_counts, self._me * 8, board.written)
        if not full:
            if board.behind:  # a link's own task found the board full, and left the rest to us
                links = {**dict.fromkeys(links), **dict.fromkeys(self._take_behind())}
            for link in links:
                link.flush()
        if full or (told and (self._urgent or self.outsiders)):  # for all, and at once
            self._urgent = full  # what waited has moved frontiers here already, and they nowhere else
            self._wrote = True
            self.wake(EVERYTHING)
        elif links:
            fence()
            bells = self._hall.bells
            for link in links:
                neighbour = self.peers.get(link.peer)
                if neighbour is not None and bells[neighbour.slot]:
                    neighbour.pipe.ring_bell()
        return not full

    def _take_behind(self) -> list[Link]:
        peers, self.board.behind = self.board.behind, set()
        return [self.peers[peer].link for peer in peers if peer in self.peers]

    def wake(self, moved: int) -> None:
        """Rings the bells of those to whom it is of interest that these frontiers have moved.

        Only if this worker has written on its board just before: of all who wrote what it took to move a frontier, the
        last one sees it move when it looks at all boards after that. Whoever only reads leaves it to that one.
        Where there are outsiders, `flush` has woken all. (docs/internals/progress.md)
        """
        if not self._wrote and not self._looked:
            return
        fence()
        bells = self._hall.bells
        if bells.tobytes() == self._silent:
            return
        wanted = bells.tolist()
        for slot, neighbour in self._neighbours.items():
            if wanted[slot] & moved:
                neighbour.pipe.ring_bell()

    # Hearing

    def collect(self) -> bool:
        """Hears what others have said; whether there was anything."""
        hall = self._hall
        if self._wrote:
            self._wrote, self._looked = False, True
            fence()  # of two that write at the same time, one at least must see what the other wrote
        heads = hall.my_heads.tobytes()
        if WEAK:
            fence()
        counts = hall.counts.tobytes()
        if heads == self._seen_heads and counts == self._seen_counts:
            return False
        if counts != self._seen_counts:
            self._seen_counts[:] = counts
            self._read_boards(memoryview(counts).cast("q"))
        if heads != self._seen_heads:
            self._seen_heads = heads
            self._read_rings(memoryview(heads).cast("q"))
        return True

    def _read_boards(self, counts: memoryview) -> None:
        """Reads all boards that have news. In step with each other, many workers write the very same words: these are
        looked at once."""
        slots = self._hall.slots
        now = counts.tolist()
        found: dict[bytes, list[_Neighbour]] = {}
        for slot, neighbour in self._neighbours.items():
            reader = neighbour.reader
            news = now[slot] != reader.cursor
            if news:
                data = reader.read(now[slot])
                if data in found:
                    found[data].append(neighbour)
                else:
                    found[data] = [neighbour]
            if now[slots + slot] and (reader.tell() or news):
                neighbour.pipe.ring_bell()  # it waits for room
        for data, writers in found.items():
            self._hear(writers, memoryview(data).cast("q").tolist())

    def _hear(self, writers: list[_Neighbour], words: list[int]) -> None:
        """Tells the hearer what stands on the boards of some workers, all of whom wrote the same."""
        at, end = 0, len(words)
        senders = [writer.peer for writer in writers]
        while at < end:
            dataflow = words[at]
            if dataflow < 0:
                after = at
                for writer in writers:
                    letter, after = writer.reader.take_letter(words, at)
                    if letter is not None:
                        self._hear_letter(letter, writer.peer)
                at = after
                continue
            start, at = at, at + WORDS
            while at < end and words[at] == dataflow:
                at += WORDS
            self._hearer.hear_changes(senders, dataflow, words, start, at)

    def _hear_letter(self, letter: bytes, sender: int) -> None:
        for message in decode_messages(Frame(letter, _EMPTY), sender):
            if type(message) is not Hello and type(message) is not Progress:
                raise ProtocolError(f"worker {sender} has written a {type(message).__name__} on its board")
            self._hearer.hear_letter(message)

    def _read_rings(self, heads: memoryview) -> None:
        now = heads.tolist()
        for slot, neighbour in self._neighbours.items():
            pipe = neighbour.pipe
            if now[slot] != pipe.position:
                data = pipe.take(now[slot])
                if pipe.wanted:
                    pipe.ring_bell()
                messages = neighbour.link.decode(data)
                if messages:
                    self._hearer.hear_messages(messages)

    @property
    def waits(self) -> bool:
        """Whether this worker waits for room somewhere."""
        return bool(self._hall.blocked) or self.board.full

    def go_on(self) -> bool:
        """Goes on where there is room now, in rings. Whether there may be room on the board, which had none."""
        for look in tuple(self._hall.blocked):
            look()
        return self.board.full

    def concluded(self) -> None:
        """All that this worker has heard has been applied."""
        self._looked = False

    # Sleeping

    def stay_awake(self) -> None:
        """Nobody needs to wake this worker: it will look by itself."""
        self._hall.bells[self._me] = 0

    def may_sleep(self, interest: int) -> bool:
        """Others shall wake this worker, if that is of interest. False if there is something new already."""
        hall = self._hall
        hall.bells[self._me] = EVERYTHING if self.outsiders else interest | 1
        fence()
        if hall.my_heads.tobytes() == self._seen_heads and hall.counts.tobytes() == self._seen_counts:
            self._wrote = self._looked = False
            return True
        hall.bells[self._me] = 0
        return False

    def part_from(self, peer: int) -> None:
        """A worker has left, and reads this worker's board no more."""
        if peer in self.peers:
            self.board.part_from(self.peers[peer].slot)

    def forget(self, peer: int) -> None:
        """A worker has said goodbye."""
        neighbour = self.peers.pop(peer, None)
        if neighbour is not None:
            del self._neighbours[neighbour.slot]
