"""S3: troubles are told without a word of what must not be told. That it works is in test_storages.py."""

from __future__ import annotations

import subprocess
import sys
import traceback

import pytest
import trio

from dataflow.recovery.object_store import open_object_store
from dataflow.recovery.opening import open_storage
from dataflow.recovery.storage import AlreadyThere, StorageError, Threaded
from tests.servers import free_ports

SECRET = "do-not-tell-this"


def troubles(address: str) -> list[str]:
    """What each call says, with all that a traceback would show."""
    told = []

    async def act() -> None:
        storage = open_storage(address)
        for call in (
            lambda: storage.put("flow/a", b"x"),
            lambda: storage.put("flow/a", b"x", if_absent=True),
            lambda: storage.get("flow/a"),
            lambda: storage.names("flow/"),
            lambda: storage.delete("flow/a"),
        ):
            try:
                await call()
            except StorageError as error:
                told.append("".join(traceback.format_exception(error)))

    trio.run(act)
    return told


def test_wrong_credentials_are_told_and_not_shown(s3_bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    told = troubles(f"s3://{s3_bucket}/x")
    assert len(told) >= 4
    for text in told:
        assert "it refuses the credentials in the environment (AWS_ACCESS_KEY_ID" in text and "(status 403)" in text
        assert SECRET not in text and "Signature" not in text and "tests" not in text.partition("StorageError")[2]


def test_a_bucket_that_is_not_there_is_told(s3_bucket: str) -> None:
    told = troubles("s3://no-such-bucket/x")
    assert sum("there is no such bucket" in text for text in told) >= 3  # put, put if absent, names


def test_a_server_that_is_not_there_is_told(s3_bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (port,) = free_ports(1)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
    storage = open_object_store(f"s3://{s3_bucket}/x", retries=0)

    async def check() -> None:
        with pytest.raises(StorageError, match="it cannot be reached; is the endpoint right"):
            await storage.get("flow/a")

    trio.run(check)


def test_two_prefixes_of_a_bucket_do_not_see_each_other(s3_bucket: str) -> None:
    async def check() -> None:
        one, two = open_storage(f"s3://{s3_bucket}/one"), open_storage(f"s3://{s3_bucket}/one-more/")
        assert isinstance(one, Threaded) and one.title == f"s3://{s3_bucket}/one"
        await one.put("flow/a", b"1", if_absent=True)
        await two.put("flow/a", b"2", if_absent=True)
        assert (await one.get("flow/a"), await two.get("flow/a")) == (b"1", b"2")
        assert await one.names("") == await two.names("") == ["flow/a"]
        with pytest.raises(AlreadyThere):
            await two.put("flow/a", b"3", if_absent=True)

    trio.run(check)


@pytest.mark.parametrize("address", [f"s3://key:{SECRET}@bucket/prefix", f"s3://bucket/p?secret={SECRET}"])
def test_credentials_in_an_address_are_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(ValueError, match="credentials belong into the environment") as caught:
        open_storage(address)
    assert SECRET not in str(caught.value)


def test_a_bucket_must_be_named() -> None:
    with pytest.raises(ValueError, match="name a bucket, such as s3://bucket/prefix"):
        open_storage("s3://")


def test_what_is_missing_is_told() -> None:
    """In a process that cannot import the library."""
    program = (
        "import sys; sys.modules['obstore'] = None\n"
        "from dataflow.recovery.opening import open_storage\n"
        "try: open_storage('s3://bucket')\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert out == "StorageError s3://bucket needs obstore: pip install 'megaphone-dataflow[s3]'\n"
