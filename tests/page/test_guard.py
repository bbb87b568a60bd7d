"""Who gets in, asked as any program on this host could ask: without a browser's manners."""

from __future__ import annotations

import http.client
import json
from collections.abc import AsyncIterator

import pytest
import trio
from trio.testing import MockClock

from dataflow.__main__ import main as run_command
from dataflow.page import app
from dataflow.page.app import BadAsking
from tests.page.conftest import Shown


def answer(page: Shown, path: str, method: str = "GET", body: str | None = None, **headers: str) -> tuple[int, str]:
    """The status and the text."""
    host, port = page.origin.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    try:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


@pytest.mark.parametrize("path", ["/api/live", "/api/loops", "/api/holding", "/api/migrate", "/api/bins", "/api/none"])
def test_everything_that_tells_something_wants_the_token(page: Shown, path: str) -> None:
    for given in ({}, {"Authorization": "Bearer "}, {"Authorization": f"Basic {page.token}"}):
        status, text = answer(page, path, **given)
        assert status == 401 and "token" in text
    assert answer(page, f"{path}?token={page.token}")[0] == 401  # an address is written down in many places


def test_the_page_itself_tells_nothing_of_the_run(page: Shown) -> None:
    status, text = answer(page, "/")
    assert status == 200 and page.name not in text and page.token not in text


def test_another_name_for_this_host_is_refused(page: Shown) -> None:
    """A page elsewhere could have its own name point to this host (DNS rebinding)."""
    mine = {"Authorization": f"Bearer {page.token}"}
    for host in ("evil.test", "evil.test:80", "127.0.0.1.evil.test", "", "[::ffff:127.0.0.1]", "["):
        assert answer(page, "/api/loops", Host=host, **mine)[0] in (400, 403)
    assert answer(page, "/api/loops", Host="localhost:1", **mine)[0] == 200  # a tunnel may have another port


def test_another_origin_is_refused_even_with_the_token(page: Shown) -> None:
    mine = {"Authorization": f"Bearer {page.token}"}
    for origin in ("http://evil.test", "null", "http://localhost:1", page.origin.replace("http", "https")):
        assert answer(page, "/api/loops", Origin=origin, **mine)[0] == 403
    assert answer(page, "/api/loops", Sec_Fetch_Site="cross-site", **mine)[0] == 403
    assert answer(page, "/api/loops", Sec_Fetch_Site="same-site", **mine)[0] == 403
    assert answer(page, "/api/loops", Origin=page.origin, Sec_Fetch_Site="same-origin", **mine)[0] == 200


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("{", "Expecting"),
        ("[]", "an object in JSON"),
        ("{}", "'operator' must be text"),
        ('{"operator": "totals", "action": "explode", "strategy": ""}', "none of begin, dry, look, cancel"),
        ('{"operator": "none", "action": "begin", "strategy": "fluid", "to": "even"}', "there is no stateful operator"),
        ('{"operator": "totals", "action": "begin", "strategy": "fast", "to": "even"}', "is no strategy"),
        ('{"operator": "totals", "action": "begin", "strategy": "fluid", "ranges": [[0]]}', "ranges: [first, last]"),
        ('{"operator": "totals", "action": "begin", "strategy": "fluid", "ranges": [[0, 1]]}', "from a worker"),
        ('{"operator": "totals", "action": "dry", "strategy": "fluid", "ranges": [[0, 9]], "source": 7, "target": 0}',
         "none of these bins is at worker 7"),
        ('{"operator": "totals", "action": "dry", "strategy": "fluid", "ranges": [[9, 0]], "source": 0, "target": 1}',
         "from a first to a last one, not from 9 to 0"),
        ('{"operator": "\\ud800", "action": "look", "strategy": ""}', "'operator' has half a letter"),
        ('{"operator": "totals", "action": "dry", "strategy": "", "to": 7}', "'to' must be text"),
        ("[" * 60_000, "nested too deeply"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_in_words(page: Shown, body: str, said: str) -> None:
    status, text = answer(page, "/api/migrate", "POST", body, Authorization=f"Bearer {page.token}")
    assert status == 409 and said in json.loads(text)["error"]


@pytest.mark.parametrize(
    "body", ["{}", '{"worker": 0, "loop": 0, "dry": 1}', '{"worker": 0, "loop": [[]], "dry": true}']
)
def test_a_loop_is_switched_by_numbers_alone(page: Shown, body: str) -> None:
    status, text = answer(page, "/api/loops", "POST", body, Authorization=f"Bearer {page.token}")
    assert status == 409 and "a loop is switched by the number of its worker" in json.loads(text)["error"]


def test_a_body_that_does_not_come_is_given_up() -> None:
    class Silent:
        async def stream(self) -> AsyncIterator[bytes]:
            """Half of it."""
            yield b"{"
            await trio.sleep_forever()

    with pytest.raises(BadAsking, match="within 5 seconds"):
        trio.run(app._body, Silent(), clock=MockClock(autojump_threshold=0))


def test_a_websocket_is_refused(page: Shown) -> None:
    asks = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    key = {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    for path in ("/", "/api/live"):
        assert answer(page, path, Authorization=f"Bearer {page.token}", **asks, **key)[0] == 403


@pytest.mark.parametrize("command", ["page", "metrics"])
@pytest.mark.parametrize("port", ["99999", "65536", "-1", "web"])
def test_a_port_that_cannot_be_is_a_wrong_command(
    command: str, port: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run_command([command, "app", f"--port={port}"])
    assert ended.value.code == 2 and "from 0 to 65535" in capsys.readouterr().err


def test_too_much_is_refused(page: Shown) -> None:
    body = json.dumps({"operator": "x" * (1 << 17)})
    status, text = answer(page, "/api/migrate", "POST", body, Authorization=f"Bearer {page.token}")
    assert status == 409 and "too long" in text


def test_browsers_are_told_what_they_may_do(page: Shown) -> None:
    host, port = page.origin.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    connection.request("GET", "/")
    response = connection.getresponse()
    response.read()
    connection.close()
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self'" in policy and "frame-ancestors 'none'" in policy
    assert response.headers["x-content-type-options"] == "nosniff" and "server" not in response.headers
