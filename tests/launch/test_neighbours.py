"""How workers of one host are connected for a life, when some of them run already."""

from __future__ import annotations

import contextlib
import mmap
import os
import socket

import pytest
import trio

from dataflow.comm.hall import HallPlan
from dataflow.errors import TooManyWorkers
from dataflow.launch.neighbours import Introduction, Neighbours, hand_over, make_memory, map_memory

WORKERS = range(3)
SIZE = 4 * mmap.PAGESIZE


def neighbours(index: int, post: socket.socket, life: int) -> Neighbours:
    return Neighbours(index, WORKERS, {}, post, b"key", {}, life=life)


def test_what_was_sent_for_an_earlier_life_is_closed() -> None:
    with contextlib.ExitStack() as stack:
        posts, ends = {}, {}
        for worker in WORKERS:
            posts[worker], ends[worker] = (stack.enter_context(sock) for sock in socket.socketpair())
        # Life 2 was over before worker 0 had taken anything of it.
        stale = [stack.enter_context(sock) for sock in socket.socketpair()]
        hand_over(posts[0], 2, 1, stale[0])
        stale[0].close()
        memory = make_memory(WORKERS, SIZE)
        introduction = Introduction(3)
        for worker in WORKERS:
            introduction.admit(worker, posts[worker], memory, SIZE)
        os.close(memory)
        found = [neighbours(worker, ends[worker], 3) for worker in WORKERS]
        for each in found:
            links = trio.run(each.links)
            assert set(links) == set(WORKERS) - {each.index}
        stale[1].settimeout(5)
        assert stale[1].recv(1) == b"", "the socket of an earlier life is still open"
        for each in found:
            for peer, sock in each.sockets.items():
                sock.setblocking(True)
                sock.sendall(bytes([each.index]))
                other = found[peer].sockets[each.index]
                other.setblocking(True)
                assert other.recv(1) == bytes([each.index])
        for each in found:
            again = each.again(4)
            assert (again.sockets, again.arenas, again.hall, again.life) == ({}, {}, None, 4)
            assert all(sock.fileno() < 0 for sock in each.sockets.values())


def test_arenas_and_the_hall_of_a_file_are_shared_and_apart() -> None:
    memory = make_memory(WORKERS, SIZE)
    (mine, hall), (theirs, their_hall) = map_memory(memory, WORKERS, SIZE), map_memory(memory, WORKERS, SIZE)
    os.close(memory)
    hall[:] = b"h" * len(hall)
    assert len(hall) == HallPlan(len(WORKERS)).size and bytes(their_hall) == bytes(hall)
    places = [mine[worker].lend([bytes([worker + 1]) * SIZE], SIZE) for worker in WORKERS]
    assert places == [0, 0, 0]
    for worker in WORKERS:
        assert bytes(theirs[worker].borrow(0, SIZE, lambda _: None)) == bytes([worker + 1]) * SIZE
    assert bytes(hall) == b"h" * len(hall)


def test_a_file_that_cannot_be_mapped_is_an_error() -> None:
    read, write = os.pipe()
    try:
        with pytest.raises(TooManyWorkers, match="cannot map the memory that it shares"):
            map_memory(read, WORKERS, SIZE)
    finally:
        os.close(read)
        os.close(write)
