"""Word count: feeds of a microblog, a record for each word, in intervals between which the frequencies drift slowly."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bench.skew.zipf import sample, zipf

Columns = dict[str, NDArray[np.int64]]

SYLLABLES = ["ba", "co", "di", "fu", "ga", "ho", "ki", "lu", "me", "no", "pa", "ri", "su", "te", "vo", "za"]


def social(
    records: int, *, words: int = 180_000, z: float = 0.85, drift: float = 0.05, intervals: int = 5, seed: int = 0
) -> Iterator[Columns]:
    """Per interval, columns `feed` and `word`: so many records, some eight words to a feed.

    Between intervals a share `drift` of all words exchange their frequencies with words of nearby rank: topics come
    and go, slowly. The paper's data are 5 days of over 5,000,000 records with 180,000 words.
    """
    rng = np.random.default_rng(seed)
    by_rank = zipf(words, z)
    word_of_rank = rng.permutation(words)
    feeds = 0
    for _ in range(intervals):
        feed = feeds + np.cumsum(rng.random(records) < 1 / 8)
        yield {"feed": feed, "word": word_of_rank[sample(by_rank, records, rng)]}
        feeds = int(feed[-1]) + 1 if records else feeds
        for rank in rng.choice(words, int(drift * words / 2), replace=False):
            other = min(words - 1, int(rank * rng.uniform(0.5, 1.5)))
            word_of_rank[rank], word_of_rank[other] = word_of_rank[other], word_of_rank[rank]


def vocabulary(words: int) -> list[str]:
    """A word for each number, pronounceable and all different.

    >>> vocabulary(18)[0], vocabulary(18)[17]
    ('ba', 'coco')
    """
    return [_word(number) for number in range(words)]


def _word(number: int) -> str:
    syllables = [SYLLABLES[number % 16]]
    while number := number // 16:
        syllables.append(SYLLABLES[number % 16])
    return "".join(reversed(syllables))
