"""NEXMark's events one by one, in plain Python with whole numbers of any size."""

from typing import Any

from nexmark.events.config import Config
from nexmark.events.vocabulary import dictionary

FIELDS = ("name", "city", "state", "item_name", "initial_bid", "reserve", "length", "seller", "category")
FIELDS += ("auction", "bidder", "price")
WORD = 2**64


def event_at(config: Config, number: int) -> tuple[str, dict[str, Any]]:
    """The kind and the row of the event with this number."""
    group = config.group
    event = number // group * group + 953 * number % group
    round, offset = divmod(event, config.persons + config.auctions + config.bids)
    stamped = {"event": event, "date_time": time(config, event)}
    if offset < config.persons:
        return "person", stamped | person(config, event, round * config.persons + offset)
    last_person = round * config.persons + config.persons - 1
    if offset < config.persons + config.auctions:
        id = round * config.auctions + offset - config.persons
        return "auction", stamped | auction(config, event, id, last_person)
    return "bid", stamped | bid(config, event, round * config.auctions + config.auctions - 1, last_person)


def person(config: Config, event: int, id: int) -> dict[str, Any]:
    words = {field: dictionary(field) for field in ("name", "city", "state")}
    return {"id": 1000 + id} | {field: w[draw(config, event, field) * len(w) // WORD] for field, w in words.items()}


def auction(config: Config, event: int, id: int, last_person: int) -> dict[str, Any]:
    rounds_ahead = config.in_flight * (config.persons + config.auctions + config.bids) // config.auctions
    horizon = time(config, event + rounds_ahead) - time(config, event)
    length = 1 + draw(config, event, "length") * max(2 * horizon, 1) // WORD
    initial_bid = price(draw(config, event, "initial_bid"))
    return {
        "id": 1000 + id,
        "item_name": dictionary("item_name")[draw(config, event, "item_name") * 1000 // WORD],
        "initial_bid": initial_bid,
        "reserve": initial_bid + price(draw(config, event, "reserve")),
        "expires": time(config, event) + length,
        "seller": hot_or_cold(config, event, "seller", last_person // 100 * 100, *people(config, last_person)),
        "category": 10 + draw(config, event, "category") * 5 // WORD,
    }


def bid(config: Config, event: int, last_auction: int, last_person: int) -> dict[str, Any]:
    oldest = max(0, last_auction - config.in_flight)
    return {
        "auction": hot_or_cold(
            config, event, "auction", last_auction // 100 * 100, oldest, last_auction - oldest + 1 + 10
        ),
        "bidder": hot_or_cold(config, event, "bidder", last_person // 100 * 100 + 1, *people(config, last_person)),
        "price": price(draw(config, event, "price")),
    }


def people(config: Config, last_person: int) -> tuple[int, int]:
    """The oldest active person, and how many are active or will soon exist."""
    active = min(last_person + 1, config.active_people)
    return last_person + 1 - active, active + 10


def hot_or_cold(config: Config, event: int, field: str, hot: int, first: int, count: int) -> int:
    which, rest = divmod(draw(config, event, field) * getattr(config, f"hot_{field}_ratio"), WORD)
    return 1000 + (hot if which > 0 else first + rest * count // WORD)


def price(bits: int) -> int:
    return int(100 * 10 ** (6 * ((bits >> 32) / 2**32)) + 0.5)


def time(config: Config, event: int) -> int:
    return config.base_time + int(event * (1e9 / config.rate))


def draw(config: Config, event: int, field: str) -> int:
    """64 bits: the element number `event` of the splitmix64 sequence that belongs to the field."""
    key = splitmix64(splitmix64(config.seed) + FIELDS.index(field))
    return splitmix64(key + (event - 1) * 0x9E3779B97F4A7C15)


def splitmix64(state: int) -> int:
    z = (state + 0x9E3779B97F4A7C15) % WORD
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % WORD
    return z ^ (z >> 31)
