"""Options that make no sense are refused, with what to do instead."""

from typing import Any

import numpy as np
import pytest

from nexmark.events.config import SECOND, Config
from nexmark.events.generator import Generator


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": -1}, "seed is -1; it must be from 0"),
        ({"seed": 2**64}, "it must be from 0 to 18446744073709551615"),
        ({"rate": 0}, "rate is 0; it must be a number of events per second above 0"),
        ({"rate": float("nan")}, "rate is nan"),
        ({"rate": float("inf")}, "rate is inf"),
        ({"base_time": -1}, "base_time is -1; it must be from 0 to .* nanoseconds"),
        ({"group": 0}, "group is 0; it must be from 1 .events come in order."),
        ({"group": 1906}, "multiple of 953, with which some events would come twice .* take 1907"),
        ({"persons": 0}, "persons is 0; a round has at least one person"),
        ({"auctions": 0}, "auctions is 0; a round has at least .* one auction"),
        ({"bids": -1}, "bids is -1"),
        ({"in_flight": -1}, "in_flight is -1; it must be from 0"),
        ({"in_flight": 2**32}, "in_flight is 4294967296"),
        ({"active_people": 0}, "active_people is 0; it must be from 1"),
        ({"hot_seller_ratio": 0}, "hot_seller_ratio is 0; it must be from 1 .nothing is hot."),
        ({"rate": 0.001, "in_flight": 10**9}, "stay open for decades; raise rate or lower in_flight"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Config(**options)


@pytest.mark.parametrize("options", [{"seed": 1.5}, {"bids": "46"}, {"rate": "fast"}, {"group": True}, {"seed": None}])
def test_a_value_of_another_type_is_refused(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(TypeError, match=f"{name} is .*; it must be a (whole )?number"):
        Config(**options)


@pytest.mark.parametrize("options", [{}, {"group": 10}, {"rate": 1e9}, {"rate": 3, "base_time": 10 * SECOND}])
def test_the_last_possible_event_has_a_time_and_the_one_after_is_refused(options: dict[str, Any]) -> None:
    generator = Generator(Config(**options))
    last = generator.config.most_events - 1
    for numbers in (range(last - 100, last + 1), np.array([last])):
        events = generator.events(numbers)
        assert sum(len(table["event"]) for table in events.values()) == len(numbers)
        for table in events.values():
            assert (table["date_time"] > 2**50).all()
        assert (events["auction"]["expires"] > events["auction"]["date_time"]).all()
    for numbers in (range(last, last + 2), np.array([last + 1])):
        with pytest.raises(ValueError, match="after the end of time"):
            generator.events(numbers)


def test_event_numbers_that_make_no_sense_are_refused() -> None:
    generator = Generator()
    with pytest.raises(ValueError, match="no event -1; events count from 0"):
        generator.events(range(-1, 5))
    with pytest.raises(ValueError, match="no event -3"):
        generator.events(np.array([5, -3]))
    with pytest.raises(TypeError, match="flat array of integers, not 1-D float64"):
        generator.events([0.5])
    with pytest.raises(TypeError, match="flat array of integers, not 2-D int64"):
        generator.events(np.zeros((2, 2), np.int64))


def test_columns_that_do_not_exist_are_refused_with_those_that_do() -> None:
    with pytest.raises(ValueError, match="no kind of event 'bids'; there are person, auction, bid"):
        Generator(columns={"bids": ["price"]})
    with pytest.raises(ValueError, match="bid has no column 'prize'; it has event, auction, bidder, price, date_time"):
        Generator(columns={"bid": ["prize"]})
    with pytest.raises(TypeError, match="the columns of bid are a list of names"):
        Generator(columns={"bid": "price"})
    with pytest.raises(ValueError, match="payload is 'some'; it must be 'none' or 'full'"):
        Generator(payload="some")  # type: ignore[arg-type]
