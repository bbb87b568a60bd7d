"""A real browser without a screen: Chromium from the distribution's packages (`make test` installs it on Debian)."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import TypeVar

import pytest
from selenium.webdriver import ActionChains, Chrome, ChromeOptions, ChromeService, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

T = TypeVar("T")
PATIENCE = 60.0  # seconds: for a busy machine; what is waited for comes in one or two
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--window-size=1400,900", "--lang=en",
    # No name is looked up and no host is reached but this one: a request that leaves the machine fails.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost, EXCLUDE evil.test",
)  # fmt: skip


def find_browser() -> tuple[str, str]:
    """The browser and its driver; the test is skipped where there are none."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("no Chromium here: apt-get install chromium chromium-driver")
    return browser, driver


class Viewer:
    """Somebody who looks at the page."""

    def __init__(self, chrome: Chrome) -> None:
        self.chrome = chrome

    def open(self, address: str) -> None:
        """Goes there, in a tab that knows nothing."""
        self.chrome.get("about:blank")
        self.chrome.get(address)

    def wait(self, found: Callable[[], T]) -> T:
        """Waits until something is so; what it is."""
        return WebDriverWait(self.chrome, PATIENCE, 0.1).until(lambda _: found())

    def all(self, selector: str) -> list[WebElement]:
        """Everything of that kind."""
        return self.chrome.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> WebElement:
        """The first of its kind, once it is there."""
        return self.wait(lambda: next(iter(self.all(selector)), None))  # type: ignore[return-value]

    def text(self, selector: str) -> str:
        """What it says; nothing if it is not there."""
        return str(self.run("return document.querySelector(arguments[0])?.textContent ?? ''", selector))

    def says(self, selector: str, part: str) -> str:
        """Waits until it says something; the whole of it."""
        self.wait(lambda: part in self.text(selector))
        return self.text(selector)

    def run(self, script: str, *arguments: object) -> object:
        """What a script in the page returns."""
        return self.chrome.execute_script(script, *arguments)

    def show(self, view: str) -> None:
        """Chooses a view."""
        self.one(f"#tab-{view}").click()
        self.wait(lambda: self.one(f"#{view}").is_displayed())

    def pick(self, first: WebElement, last: WebElement) -> None:
        """Clicks at one thing and, with Shift, at another."""
        actions = ActionChains(self.chrome).click(first).key_down(Keys.SHIFT).click(last).key_up(Keys.SHIFT)
        actions.perform()

    def drag(self, what: WebElement, to: WebElement) -> None:
        """Drags with the mouse."""
        actions = ActionChains(self.chrome).click_and_hold(what).move_by_offset(30, 5).move_to_element(to).release()
        actions.perform()

    def complaints(self) -> list[str]:
        """What the browser has said about errors since it was last asked."""
        said = self.chrome.get_log("browser")  # type: ignore[no-untyped-call]
        return [each["message"] for each in said if each["level"] == "SEVERE"]

    def requests(self) -> list[str]:
        """The addresses of everything that the page has loaded or asked for."""
        return list(self.run("return performance.getEntries().map((each) => each.name)"))  # type: ignore[call-overload]


@contextmanager
def browsing(*more: str) -> Iterator[Viewer]:
    """A browser with nothing in its memory."""
    browser, driver = find_browser()
    with TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        options = ChromeOptions()
        options.binary_location = browser
        for flag in (*FLAGS, f"--user-data-dir={profile}", *more):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        chrome = Chrome(options=options, service=ChromeService(driver, log_output=str(Path(profile) / "driver.log")))
        try:
            yield Viewer(chrome)
        finally:
            chrome.quit()


@contextmanager
def serving_elsewhere() -> Iterator[str]:
    """Another web server on this host, with a page of its own: its address, which is another origin."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Empty) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://localhost:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


class _Empty(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """An empty page."""
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>another</title>")

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""
