"""From keys to bins: many at once is the same as one by one, and what a key raises names its record."""

from __future__ import annotations

from operator import itemgetter
from random import Random
from typing import Any

import pytest

from dataflow.errors import UnstableKey
from dataflow.state.binning import MANY, Binning, bin_of, bins_of, shift_of

TEXT = "aä€😀\x00 \ud800"


def random_keys(chance: Random) -> list[Any]:
    kinds: list[Any] = [
        lambda: chance.randrange(-(1 << 63), 1 << 63),
        lambda: chance.choice((0, -1, 1, (1 << 63) - 1, -(1 << 63))),
        lambda: "".join(chance.choice(TEXT[: chance.choice((1, 2, 7))]) for _ in range(chance.randrange(6))),
        lambda: chance.choice((1 << 63, 1 << 100, -(1 << 70), True, 1.0, 2.5, None, (1, "a"), b"x")),
    ]
    some = chance.sample(kinds, chance.choice((1, 1, 1, 2)))
    return [chance.choice(some)() for _ in range(chance.choice((0, 1, MANY - 1, MANY, 3 * MANY)))]


def test_many_keys_at_once_have_the_bins_that_they_have_one_by_one() -> None:
    together = 0
    for seed in range(400):
        chance = Random(seed)
        keys, shift = random_keys(chance), shift_of(1 << chance.choice((0, 1, 8, 20)))
        expected = [bin_of(key, shift) for key in keys]
        assert Binning(itemgetter(0), shift).bins([(key,) for key in keys]) == expected, f"seed {seed}"
        bins = bins_of(keys, shift)
        together += bins is not None
        assert bins is None or bins.tolist() == expected, f"seed {seed}"
    assert together > 100


@pytest.mark.parametrize("count", [5, 3 * MANY])
def test_the_record_is_named_whose_key_raises_or_has_no_hash(count: int) -> None:
    def key(record: Any) -> Any:
        return 1 // record if isinstance(record, int) else record

    for wrong, error in ((0, ZeroDivisionError), (object, UnstableKey)):
        batch: list[Any] = [1] * count
        batch[count // 2] = wrong
        with pytest.raises(error) as failure:
            Binning(key, shift_of(16)).bins(batch)
        assert failure.value.__notes__[0] == f"at the record {wrong!r}"
