"""A real browser without a screen, and the viewer in a thread of the test's own process."""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.app_server import app_server

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--lang=en",
)
PATIENCE = 300.0
"""Seconds until something must be on the page: a guard against a test that hangs."""


@contextmanager
def browser(folder: Path, width: int = 1300, height: int = 900) -> Iterator[Any]:
    """Chromium with its own profile in `folder`; a skip where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if found is None or driver is None:
        pytest.skip(f"no browser: looked for {', '.join(BROWSERS)}, and for chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = found
    for flag in (
        *FLAGS,
        f"--user-data-dir={folder / 'profile'}",
        f"--window-size={width},{height}",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(driver)
    made = webdriver.Chrome(options, service)
    try:
        made.set_page_load_timeout(PATIENCE)
        yield made
    finally:
        made.quit()


def until(condition: Any, what: str) -> Any:
    """Wait for the result of a condition; an AssertionError if there is none."""
    from selenium.common.exceptions import WebDriverException

    end = time.monotonic() + PATIENCE
    while True:
        try:
            found = condition()
        except WebDriverException:  # the page is just being drawn
            found = None
        if found:
            return found
        assert time.monotonic() < end, f"waited {PATIENCE:g} s for {what}"
        time.sleep(0.05)


def all_of(driver: Any, selector: str) -> list[Any]:
    """The elements of a CSS selector that are there now."""
    found: list[Any] = driver.find_elements("css selector", selector)
    return found


def one_of(driver: Any, selector: str, text: str = "") -> Any:
    """The first element of a CSS selector with a text, once it is there."""

    def look() -> Any:
        return next((e for e in all_of(driver, selector) if text in e.text), None)

    return until(look, f"{selector} with {text!r}")


def click(driver: Any, selector: str, text: str = "") -> None:
    """Click the first element of a CSS selector with a text; again where it is drawn anew."""

    def done() -> bool:
        one_of(driver, selector, text).click()
        return True

    until(done, f"{selector} with {text!r} to be clicked")


def go(driver: Any, address: str) -> None:
    """Go to a part of the viewer, `address` from `#` on, and wait until the last one is gone."""
    script = """const [address] = arguments, before = location.hash;
        location.hash = address;
        if (location.hash === before) return;
        for (const page of document.querySelectorAll(".page")) page.dataset.left = "";"""
    driver.execute_script(script, address)
    until(lambda: not all_of(driver, "[data-left]"), f"{address} to be drawn")


@contextmanager
def viewer_server(viewer: Any, hosts: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """The viewer's URL, and its guard; it is ended after."""
    pytest.importorskip("uvicorn", reason="the extra 'web' is not installed")
    pytest.importorskip("fastapi", reason="the extra 'web' is not installed")
    from dialgym.io.http_server import listening
    from dialgym.viewer.app import make_app
    from dialgym.viewer.guard import Guard

    listener = listening("view")
    guard = Guard(listener.getsockname()[1], hosts)
    with app_server(make_app(viewer, guard), listener) as url:
        yield url, guard
