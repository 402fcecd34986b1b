"""Headless Chromium for tests and screenshots."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests import waiting

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
MISSING = "NOT RUN: the browser tests of the dashboard need chromium and chromedriver on PATH"
_FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars --force-color-profile=srgb"
)


class Browser:
    """One tab."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def size(self, width: int, height: int) -> None:
        """The size of the page in pixels."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def prefer(self, scheme: str) -> None:
        """What prefers-color-scheme says: light or dark."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def open(self, address: str) -> None:
        """Load a page."""
        self.driver.get(address)

    def leave(self) -> None:
        """Close the connection of the page, before its server ends."""
        self.driver.get("about:blank")

    def text(self) -> str:
        """The words of the page as they are shown."""
        return str(self.run("return document.body.innerText"))

    def run(self, script: str, *arguments: Any) -> Any:
        """Run a script in the page."""
        return self.driver.execute_script(script, *arguments)

    def count(self, selector: str) -> int:
        """How many elements match a CSS selector."""
        return int(self.run("return document.querySelectorAll(arguments[0]).length", selector))

    def element(self, selector: str) -> Any:
        """The first element that matches a CSS selector."""
        return self.driver.find_element("css selector", selector)

    def pressable(self, words: str) -> Any:
        """The first button or link with these words."""
        path = f"//*[self::a or self::button][contains(normalize-space(.), '{words}')]"
        return self.driver.find_element("xpath", path)

    def top(self, words: str) -> float:
        """Where the button or link with these words starts, in pixels from the top of the window."""
        return float(self.run("return arguments[0].getBoundingClientRect().top", self.pressable(words)))

    def click(self, words: str) -> None:
        """Click the button or link with these words."""

        def clicked() -> bool:
            from selenium.common.exceptions import WebDriverException

            try:
                self.pressable(words).click()
            except WebDriverException:  # not there yet, drawn again meanwhile, or behind a dialog that closes
                return False
            return True

        self.until(clicked, f"there is no {words!r} to click")

    def until(self, holds: Callable[[], Any], otherwise: str) -> Any:
        """Wait until something holds; the error shows the page."""
        deadline = time.monotonic() + waiting.budget()
        while not (found := holds()):
            if time.monotonic() > deadline:
                raise waiting.failure(f"{otherwise}; the page shows:\n{self.text()}")
            time.sleep(0.05)
        return found

    def shows(self, *words: str) -> None:
        """Wait until the page shows all of these."""
        self.until(lambda: all(word in self.text() for word in words), f"the page does not show {words}")

    def problems(self) -> list[str]:
        """Errors in the console: scripts that fail, and what the content security policy blocks."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]

    def first_paint(self) -> float:
        """Milliseconds from the request to the first paint of contents."""
        script = "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
        return float(self.until(lambda: self.run(script), "nothing was painted"))


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser with an empty profile, which stays off the network."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in (*_FLAGS.split(), f"--user-data-dir={profile}"):
            options.add_argument(flag)
        service = webdriver.ChromeService(executable_path=DRIVER)
        driver = webdriver.Chrome(options=options, service=service)
        try:
            yield Browser(driver)
        finally:
            driver.quit()
