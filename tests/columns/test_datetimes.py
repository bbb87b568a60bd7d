"""Dates, moments and time spans in columns: units are known and converted, zones survive, and pandas says the same."""

from __future__ import annotations

import copy
import datetime as dt
import re
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dataflow
import megaphone
from dataflow.columns import Columns
from dataflow.columns.instants import words
from dataflow.columns.pact import ExchangeColumns, route_words
from dataflow.columns.zones import Zoned, plain, with_zone, zone_of
from dataflow.comm import codec
from dataflow.comm.columns import decode_columns, encode_columns
from dataflow.errors import ConstructionError, TimeError
from dataflow.state import native as stateful
from dataflow.state.folds.fold import fold
from dataflow.state.stores.fold_store import FoldStore, Side
from dataflow.state.stores.join_store import JoinStore, Pool
from dataflow.testing import simulate
from dataflow.time.durations import moment, nanoseconds, seconds
from tests.columns.moments import BERLIN, START, UNITS, results, zoned

# ----------------------------------------------------------------------------------------------- durations


@pytest.mark.parametrize(
    ("duration", "expected"),
    [
        ("10s", 10 * 10**9),
        ("5m", 300 * 10**9),
        ("250ms", 250 * 10**6),
        ("1h30m", 5400 * 10**9),
        ("1.5us", 1500),
        (" 2 d ", 2 * 86400 * 10**9),
        (dt.timedelta(days=-1, microseconds=1), -86400 * 10**9 + 1000),
        (np.timedelta64(3, "W"), 21 * 86400 * 10**9),
        (np.timedelta64(7, "ns"), 7),
        (np.timedelta64(5, "25s"), 125 * 10**9),
        (pd.Timedelta(1_000_001), 1_000_001),
    ],
)
def test_durations_in_nanoseconds(duration: Any, expected: int) -> None:
    assert nanoseconds(duration) == expected
    assert seconds(duration) == expected / 1e9 and seconds(2) == 2.0


@pytest.mark.parametrize(
    "bad", ["", "10", "s", "10 parsecs", "1s-", "0.1ns", np.timedelta64(1, "Y"), np.timedelta64("NaT")]
)
def test_what_is_no_duration(bad: Any) -> None:
    with pytest.raises(ValueError, match=r"is not a duration|is not a whole number"):
        nanoseconds(bad)


def test_moments_are_times_of_a_dataflow() -> None:
    aware = dt.datetime(1970, 1, 1, 2, tzinfo=ZoneInfo(BERLIN))  # an hour after midnight, UTC
    assert moment(aware, "s") == 3600 == moment(np.datetime64(1, "h"), "s") == moment(dt.datetime(1970, 1, 1, 1), "s")
    assert moment(dt.date(1970, 1, 2), "h") == 24 and moment(pd.Timestamp(7)) == 7 == moment(np.datetime64(7, "ns"))
    with pytest.raises(ValueError, match="is between two times of a dataflow that counts s"):
        moment(np.datetime64(1500, "ms"), "s")


def test_inputs_probes_and_loops_take_moments_and_durations() -> None:
    seen: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow(time="ms") as scope:
            handle, stream = scope.input()
            probe = (
                stream.delay(lambda time, record: dt.datetime(1970, 1, 1, 0, 0, 9))
                .inspect(lambda time, record: seen.append((time, record)))
                .probe()
            )
        handle.send(["x"], at=np.datetime64(2, "s"))
        handle.advance_to(dt.datetime(1970, 1, 1, 0, 0, 3, tzinfo=dt.UTC))
        assert handle.time == 3000
        with pytest.raises(TimeError, match="between two times"):
            handle.advance_to(np.datetime64(4_000_001, "us"))
        for early in (dt.datetime(1969, 12, 31), np.datetime64("1960-01-01"), dt.date(1, 1, 1)):
            assert probe.passed(early)
            for act in (handle.advance_to, lambda time: handle.send(["y"], at=time)):
                with pytest.raises(TimeError, match="is before 1970, where the times of a dataflow begin: send at a"):
                    act(early)
        handle.advance_to(dt.datetime(1970, 1, 1, 0, 0, 10))
        await probe.wait_passed(dt.datetime(1970, 1, 1, 0, 0, 9))

    simulate(main, workers=1)
    assert seen == [(9000, "x")]


# -------------------------------------------------------------------------------------------------- zones


ROUNDS: dict[str, Any] = {
    "Arrow": lambda batch: Columns(batch.to_arrow()),
    "pandas": lambda batch: Columns(batch.to_pandas()),
    "polars": lambda batch: Columns(batch.to_polars()),
    "series": lambda batch: Columns(dict(batch.to_pandas().items())),
    "index": lambda batch: Columns({"t": pd.DatetimeIndex(batch.to_pandas()["t"])}),
    "wire": lambda batch: through_the_wire(batch),
    "map": lambda batch: Columns({"t": batch["t"]}),
    "arithmetic": lambda batch: Columns({"t": batch["t"] + np.timedelta64(1, "s") - np.timedelta64(1, "s")}),
    "filter": lambda batch: batch.filter(np.ones(3, bool)).filter(plain(batch["t"]) == plain(batch["t"])),
    "take": lambda batch: batch.take([2, 1, 0]).take([2, 1, 0]),
    "slice": lambda batch: Columns.concat([batch.slice(0, 1), batch.slice(1, 3)]),
    "exchange": lambda batch: Columns.concat(ExchangeColumns(["t"]).split(batch, 3)).take(back_in_order(batch)),
    "select": lambda batch: batch.select(["t"]).with_columns({"u": batch["t"]}).select(["t"]),
}


def back_in_order(batch: Columns) -> Any:
    split = Columns.concat(ExchangeColumns(["t"]).split(batch, 3))["t"].tolist()
    return [split.index(value) for value in batch["t"].tolist()]


def through_the_wire(batch: Columns) -> Columns:
    buffers: list[Any] = []
    shapes = codec.decode(codec.encode(encode_columns(batch, buffers)))
    return decode_columns(shapes, iter([memoryview(bytes(buffer)) for buffer in buffers]))


@pytest.mark.parametrize("way", ROUNDS)
@pytest.mark.parametrize("unit", UNITS)
def test_zones_survive(unit: str, way: str) -> None:
    for zone in (BERLIN, "UTC", *([] if way == "polars" else ["+05:30"])):  # polars has no offsets
        batch = Columns({"t": zoned(unit, zone)})
        back = ROUNDS[way](batch)
        assert zone_of(back["t"]) == zone, way
        assert np.array_equal(plain(back["t"]), plain(batch["t"]))
        if unit != "s" or way not in ("polars", "pandas", "series", "index"):  # these may have no seconds
            assert back["t"].dtype == batch["t"].dtype and back == batch
        assert str(batch.to_pandas()["t"].dtype) == f"datetime64[{unit}, {'UTC' + zone if zone[0] == '+' else zone}]"


def test_zones_survive_an_exchange_of_many_rows() -> None:
    """Large batches are scattered by compiled code."""
    batch = Columns({"k": np.arange(9000), "t": zoned(numbers=range(9000))})
    for part in ExchangeColumns(["k"]).split(batch, 2):
        assert zone_of(part["t"]) == BERLIN and plain(part["t"]).astype("i8").tolist() == part["k"].tolist()


def test_zones_are_part_of_what_a_column_is() -> None:
    batch = Columns({"t": zoned()})
    assert repr(batch) == "<3 rows of t: datetime64[us, Europe/Berlin]>"
    assert batch != Columns({"t": plain(zoned())}) and batch != Columns({"t": zoned(zone="UTC")})
    assert Columns.alike([batch, batch]) and not Columns.alike([batch, Columns({"t": plain(zoned())})])
    assert not Columns.alike([batch, Columns({"t": zoned(zone="UTC")})])
    summer = zoned("s", numbers=[int(dt.datetime(2026, 7, 1, tzinfo=dt.UTC).timestamp())])
    assert Columns({"t": summer}).rows() == [(dt.datetime(2026, 7, 1, 2, tzinfo=ZoneInfo(BERLIN)),)]
    assert Columns({"t": zoned(zone="-03:30", numbers=[0])}).rows()[0][0].isoformat() == "1969-12-31T20:30:00-03:30"
    assert Columns({"t": with_zone(np.array(["NaT"], "M8[s]"), BERLIN)}).rows() == [(None,)]
    with pytest.raises(ValueError, match="nanoseconds in Europe/Berlin are no datetimes of Python"):
        Columns({"t": zoned("ns")[2:]}).rows()


def test_zones_stay_with_moments_and_not_with_what_is_made_of_them() -> None:
    moments = zoned()
    for kept in (
        moments[1:],
        moments.copy(),
        moments + np.timedelta64(1, "s"),
        moments.astype("M8[ns]"),
        np.sort(moments),
    ):
        assert zone_of(kept) == BERLIN
    for lost in (moments - moments, moments == moments, moments.view("i8"), moments.astype("M8[D]"), np.isnat(moments)):
        assert zone_of(lost) is None
    assert type(moments == moments) is np.ndarray and type(moments.max()) is np.datetime64
    assert zone_of(copy.deepcopy(moments)) == BERLIN


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            [dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 1, tzinfo=dt.UTC)],
            "datetimes without a time zone and with one",
        ),
        (
            [dt.datetime(2026, 1, 1, tzinfo=dt.UTC), dt.datetime(2026, 1, 1)],
            "datetimes without a time zone and with one",
        ),
        ([dt.date(2026, 1, 1), dt.datetime(2026, 1, 1, 12)], "dates and datetimes without a time zone"),
    ],
)
def test_lists_of_different_moments_are_refused(values: Any, message: str) -> None:
    with pytest.raises(TypeError, match=re.escape(f"column 't' has {message}: a column holds values of one type")):
        Columns({"t": values})


def test_lists_of_pandas_moments_keep_their_nanoseconds() -> None:
    for values in ([pd.Timestamp(1_001), None], [pd.Timestamp(0), pd.Timestamp(1_001)]):
        if None not in values:
            assert Columns({"t": values})["t"].astype("i8").tolist() == [0, 1_001]
    aware = Columns({"t": [pd.Timestamp(1_001, tz=BERLIN)]})["t"]
    assert zone_of(aware) == BERLIN and plain(aware).astype("i8").tolist() == [1_001]
    assert Columns({"t": [pd.Timedelta(1_001)]})["t"].astype("i8").tolist() == [1_001]


def test_dates_that_are_no_dates_are_refused() -> None:
    days = pa.array([86_400_000, 5], pa.int64()).view(pa.date64())
    with pytest.raises(
        ValueError, match=re.escape("column 'a' is datetime64[ms], and 1970-01-01T00:00:00.005 cannot be")
    ):
        Columns({"a": days})
    with pytest.raises(TypeError, match=re.escape("Times of day are no column: make them time spans since midnight")):
        Columns({"a": pl.Series([dt.time(1, 2)])})


@pytest.mark.parametrize("zone", ["../etc/passwd", "a" * 60, "Europe/Berlin\n", "", 5, None, ["x"]])
def test_zones_of_a_peer_are_checked(zone: Any) -> None:
    with pytest.raises(ValueError, match="is not the name of a time zone"):
        decode_columns([1, ["t", ["<M8[us]", zone], 1]], iter([memoryview(bytes(8))]))


def test_zones_of_a_peer_belong_to_moments() -> None:
    with pytest.raises(ValueError, match="a column of int64 in the time zone 'UTC'"):
        decode_columns([1, ["t", ["<i8", "UTC"], 1]], iter([memoryview(bytes(8))]))


def test_zones_between_processes() -> None:
    found = dataflow.execute(_zones_of_exchanged, workers=2)
    assert {zone for zones in found for zone in zones} == {(BERLIN, "datetime64[us]")} and all(found)


async def _zones_of_exchanged(worker: dataflow.Worker) -> list[Any]:
    seen: list[Any] = []
    with worker.dataflow() as scope:
        handle, stream = scope.input()
        stream.columns.exchange("k").columns.filter(lambda b: b["k"] >= 0).inspect_batch(
            lambda time, batch: seen.append((zone_of(batch["t"]), str(batch["t"].dtype)))
        )
    handle.send({"k": np.arange(20), "t": with_zone(np.arange(20).astype("M8[us]"), BERLIN)})
    return seen


# ------------------------------------------------------------------------------------- units that differ


def test_batches_of_different_units_become_one_and_never_mix() -> None:
    parts = [Columns({"t": np.array([START], "M8[s]").astype(f"M8[{unit}]")}) for unit in UNITS]
    joined = Columns.concat(parts)["t"]
    assert joined.dtype == "M8[ns]" and len(set(joined.tolist())) == 1
    far = Columns({"t": np.array(["3000-01-01"], "M8[s]")})
    says = "column 't' is datetime64[s], and 3000-01-01T00:00:00 cannot be told as datetime64[ns]: 64 bits of ns do not"
    with pytest.raises(ValueError, match=re.escape(says)):
        Columns.concat([far, parts[3]])
    for other in (zoned(zone="UTC"), plain(zoned())):
        with pytest.raises(
            TypeError, match=r"column 't' holds datetime64.us, Europe/Berlin. and datetime64.us.* in different"
        ):
            Columns.concat([Columns({"t": zoned()}), Columns({"t": other})])


@pytest.mark.parametrize("kind", "mM")
def test_equal_keys_of_any_unit_go_to_the_same_place(kind: str) -> None:
    base = np.array([0, START, -7, "NaT"], f"{kind}8[s]")
    expected = route_words(base.astype(f"{kind}8[ns]")).tolist()
    for unit in (*UNITS, "s"):
        assert route_words(base.astype(f"{kind}8[{unit}]")).tolist() == expected == words(base[::-1])[::-1].tolist()
    days = np.array([0, 3, -1], f"{kind}8[D]")
    assert route_words(days).tolist() == route_words(days.astype(f"{kind}8[ms]")).tolist()


def note(key: int, value: int, state: Any) -> tuple[int, int]:
    """The key and the value as they come."""
    state.n += 1
    return key, value


@pytest.mark.parametrize("compiled", [False, True])
def test_folds_get_one_unit_whatever_the_batches_have(compiled: bool) -> None:
    used = fold(note, state={"n": "i8"}, output={"k": "i8", "t": "i8"}, compiled=compiled)
    operator = FoldStore("note", [Side("k", "t", used)], None, 4, None)
    for unit in UNITS:
        batch = Columns(
            {"k": np.array([1], "M8[s]").astype(f"M8[{unit}]"), "t": np.array([5], "m8[s]").astype(f"m8[{unit}]")}
        )
        assert [row for out in operator.run(0, [[batch]]) for row in out.rows()] == [(10**9, 5 * 10**9)]
    assert operator.table.read().rows() == [(10**9, 4)]


@pytest.mark.parametrize("compiled", [False, True])
def test_folds_declare_units_and_give_moments(compiled: bool) -> None:
    types = {"k": "i8", "t": "M8[ms, Europe/Berlin]"}
    used = fold(note, state={"n": "i8"}, output=types, values={"t": "M8[ms]"}, compiled=compiled)
    operator = FoldStore("note", [Side("k", "t", used)], None, 4, None)
    for unit in UNITS:
        (out,) = operator.run(0, [[Columns({"k": [1], "t": zoned("s", numbers=[START]).astype(f"M8[{unit}]")})]])
        assert (
            out["t"].dtype == "M8[ms]"
            and zone_of(out["t"]) == BERLIN
            and plain(out["t"])[0] == np.datetime64(START, "s")
        )
    says = "note: column 't' is datetime64[us], and 1970-01-01T00:00:00.000001 cannot be told as datetime64[ms]: it is"
    with pytest.raises(ValueError, match=re.escape(says)):
        operator.run(0, [[Columns({"k": [1], "t": np.array([1], "M8[us]")})]])


@pytest.mark.parametrize("kind", ["M8", "m8[Y]", "M8[7s]", "M8[us, no zone]"])
def test_units_that_folds_cannot_declare(kind: str) -> None:
    with pytest.raises(ConstructionError, match=r"say its unit|is not the name of a time zone"):
        fold(note, state={"n": "i8"}, output={"k": "i8", "t": kind})


def test_joins_keep_units_and_zones_and_refuse_others() -> None:
    joining = JoinStore("join", ("k", "k"), (["t"], ["y"]), None, 4)
    joining.run(0, [[Columns({"k": [1], "t": zoned("ms", numbers=[5])})], []])
    (pair,) = joining.run(1, [[], [Columns({"k": [1], "y": [2]})]])
    assert zone_of(pair["t"]) == BERLIN and pair["t"].dtype == "M8[ms]"
    for other, name in (
        (zoned("us"), "datetime64[us] in Europe/Berlin"),
        (zoned("ms", "UTC"), "datetime64[ms] in UTC"),
    ):
        says = f"join: column 't' is {name}, and was datetime64[ms] in Europe/Berlin before"
        with pytest.raises(TypeError, match=re.escape(says)):
            joining.run(2, [[Columns({"k": [1], "t": other[:1]})], []])
    pool, arrives = joining.parts[1], Pool(4, ["t"])
    arrives.adopt(pool.describe())
    assert arrives.kinds == pool.kinds and arrives.kinds is not None and arrives.kinds[0].zone == BERLIN


def test_zones_survive_a_migration() -> None:
    """All bins move to worker 1, to which no batch has told a type, before the right side comes."""
    seen: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            control, configuration = scope.input("control")
            left, events = scope.input()
            right, names = scope.input()
            joined = megaphone.join(configuration, events, names, key="k", value=["t"], right_value=["y"], bins=4)
            probe = joined.inspect_batch(lambda _, batch: seen.append((worker.index, batch))).probe()
        steps = (([0] * 4, None), ([1] * 4, None), (None, {"k": np.arange(8), "y": np.arange(8)}))
        for time, (owners, pairs) in enumerate(steps):
            if worker.index == 0:
                control.send([megaphone.Move(bin, to) for bin, to in enumerate(owners or [])])
                if time == 0:
                    left.send({"k": np.arange(8), "t": zoned("ms", numbers=range(8))})
                if pairs:
                    right.send(pairs)
            for handle in (control, left, right):
                handle.advance_to(time + 1)
            await probe.wait_passed(time)

    simulate(main, workers=2)
    ((where, batch),) = seen
    assert where == 1 and zone_of(batch["t"]) == BERLIN and batch["t"].dtype == "M8[ms]" and len(batch) == 8


def test_records_are_post_dated_to_moments() -> None:
    seen: list[Any] = []

    def remind(time: int, batch: Columns, state: Any, notificator: Any) -> None:
        seen.extend((time, key) for key in notificator.due["key"].tolist())
        if len(batch):
            notificator.notify_at(batch["at"], batch["k"])
            notificator.notify_at(dt.datetime(1970, 1, 1, 0, 0, 9), [9])

    batch = {"k": [1, 2], "at": np.array([2, 3], "M8[s]")}
    results(lambda s: stateful.unary(s, key="k", fold=remind, state={"n": "i8"}), [batch], time="ms")
    assert seen == [(2000, 1), (3000, 2), (9000, 9)]


def test_groups_and_extremes_of_zoned_moments() -> None:
    batch = {"k": [1, 1, 2], "t": zoned()}
    ((_, out),) = results(lambda s: s.columns.aggregate("k", first=("min", "t"), last=("max", "t")), [batch])
    assert zone_of(out["first"]) == BERLIN == zone_of(out["last"]) and type(out["k"]) is np.ndarray
    ((_, out),) = results(lambda s: s.columns.aggregate("t", n="count"), [batch])
    assert zone_of(out["t"]) == BERLIN and isinstance(out["t"], Zoned)
