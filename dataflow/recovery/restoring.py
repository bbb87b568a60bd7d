"""Going on from a manifest: who gets which share, and which shards. docs/internals/recovery.md, "Recovery"."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

import trio

from dataflow.build.cuts import Gate, Participant, ShardedParticipant, StateMismatch
from dataflow.recovery.reading import read_ahead
from dataflow.recovery.vault import Vault

if TYPE_CHECKING:
    from dataflow.build.hooks import Words
    from dataflow.recovery.manifest import Manifest, SavedFile

_AHEAD = 3  # files that are read while one is put back
_TURN = 1 << 20  # bytes that are put back in one turn


class Restoring:
    """Brings the participants of one dataflow on one worker back to where a manifest has them."""

    def __init__(self, vault: Vault, participants: Mapping[str, Gate], worker: int) -> None:
        self._vault = vault
        self._participants = {name: gate.participant for name, gate in participants.items()}
        self._worker = worker

    def begin(self) -> None:
        """Hands out plain shares, when the dataflow is complete and nothing has run."""
        manifest = self._vault.manifest
        if manifest is None:
            return
        _require_fit(manifest, self._participants, self._vault.drop)
        for name, participant in self._participants.items():
            if name in manifest.shares:
                participant.restore(manifest.share_values(name))

    async def run(self) -> None:
        """Brings shards back; then worker 0 commits output that may not have become visible."""
        manifest = self._vault.manifest
        if manifest is None:
            return
        wanted = [file for file in manifest.files if self._wants(file)]
        async with read_ahead(self._vault.read, wanted, _AHEAD) as files:
            async for pieces in files:
                await self._put_back(pieces)
        if self._worker == 0:
            await self._commit(manifest)

    def _wants(self, file: SavedFile) -> bool:
        """Whether something in a file belongs here."""
        return any(
            isinstance(participant := self._participants.get(name), ShardedParticipant)
            and any(map(participant.owns, saved.shards.tolist()))
            for name, saved in file.live.items()
        )

    async def _put_back(self, pieces: Iterator[tuple[str, int, Words]]) -> None:
        size = 0
        for operator, shard, words in pieces:
            participant = self._participants.get(operator)
            if isinstance(participant, ShardedParticipant) and participant.owns(shard):
                participant.put(shard, words)
                size += words.nbytes
                if size > _TURN:
                    size = 0
                    await trio.lowlevel.checkpoint()

    async def _commit(self, manifest: Manifest) -> None:
        """For sinks that the program has no longer, nobody can."""
        for name in manifest.tokens:
            participant, shares = self._participants.get(name), manifest.share_values(name)
            for worker, token in manifest.token_values(name).items():
                if participant is not None:
                    await participant.commit(manifest.time, shares.get(worker), token)


def _require_fit(manifest: Manifest, participants: Mapping[str, Participant], drop: Collection[str]) -> None:
    """StateMismatch if something that was saved would be lost, or does not fit."""
    for name, saved in manifest.operators.items():
        participant = participants.get(name)
        if name in drop:
            continue
        if not isinstance(participant, ShardedParticipant):
            near = difflib.get_close_matches(name, participants, 1)
            hint = f"; did {name!r} become {near[0]!r}?" if near else ""
            raise StateMismatch(
                f"the snapshot has state of an operator {name!r}, and the program has none of that name{hint} Give the "
                f"operator its old name, or drop the state (--drop {name})"
            )
        participant.require_fit(saved.description)
