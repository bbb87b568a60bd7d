"""Redis and Valkey by `redis-py`, in threads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from redis import Redis

PATIENCE = 30.0  # seconds for the server to answer


def connect(url: str, settings: Mapping[str, object]) -> Redis:
    """A connection, which is made when something is first asked. Bytes are bytes."""
    from redis import Redis
    from redis.backoff import ExponentialBackoff
    from redis.exceptions import ConnectionError
    from redis.retry import Retry

    options = {
        "socket_timeout": PATIENCE,
        "socket_connect_timeout": PATIENCE,
        "health_check_interval": 30,
        "retry": Retry(ExponentialBackoff(cap=2.0), 8),
        "retry_on_error": [ConnectionError],
        **settings,
        "decode_responses": False,
    }
    return Redis.from_url(url, **options)


def without_password(url: str) -> str:
    """An address as it may be shown."""
    scheme, mark, rest = url.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"
