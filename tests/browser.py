"""A real browser without a window, for tests of pages: the system's Chromium."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from required import required_program, skip_or_fail

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run", "--hide-scrollbars",
    "--disable-dev-shm-usage", "--force-color-profile=srgb",
)  # fmt: skip


class Browser:
    """Actions of tests on a page: open, read, click, drag, print."""

    def __init__(self, driver, downloads: Path) -> None:
        self.driver, self.downloads = driver, downloads
        self.run, self.command = driver.execute_script, driver.execute_cdp_cmd

    def open(
        self, page: Path | str, width: int = 1280, height: int = 900, phone: bool = False
    ) -> None:
        """Load a file or URL in a window of this size; wait until its map is drawn."""
        self.resize(width, height, phone)
        self.drain()
        self.driver.get(page if isinstance(page, str) else page.absolute().as_uri())
        self.wait("return document.documentElement.dataset.ready === 'yes'")
        self.settle()

    def resize(self, width: int, height: int, phone: bool = False) -> None:
        size = {"width": width, "height": height, "mobile": phone}
        self.command(
            "Emulation.setDeviceMetricsOverride", size | {"deviceScaleFactor": 2 if phone else 1}
        )
        self.command("Emulation.setTouchEmulationEnabled", {"enabled": phone})

    def wait(self, script: str, *arguments, seconds: float = 60) -> object:
        """Run a script until its result is true; return the result."""
        from selenium.webdriver.support.ui import WebDriverWait

        waiting = WebDriverWait(self.driver, seconds, 0.02)
        return waiting.until(lambda _: self.run(script, *arguments), script)

    def settle(self) -> None:
        """Wait for two frames, after which pending changes are drawn."""
        self.driver.execute_async_script(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))"
        )

    def click(self, selector: str) -> None:
        self.run("document.querySelector(arguments[0]).click()", selector)
        self.settle()

    def text(self, selector: str) -> str:
        return self.run("return document.querySelector(arguments[0]).innerText", selector)

    def change(self, selector: str, value: str) -> None:
        """Set the value of a control and dispatch its events."""
        self.run(
            "const e = document.querySelector(arguments[0]); e.value = arguments[1];"
            "for (const kind of ['input', 'change']) e.dispatchEvent(new Event(kind))",
            selector, value,
        )  # fmt: skip
        self.settle()

    def mouse(self, kind: str, x: float, y: float, **fields) -> None:
        event = {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1} | fields
        self.command("Input.dispatchMouseEvent", event)

    def drag(self, places, **fields) -> None:
        """Press at the first position, move through the others, release at the last."""
        self.mouse("mousePressed", *places[0], **fields)
        for place in places[1:]:
            self.mouse("mouseMoved", *place, buttons=1, **fields)
        self.mouse("mouseReleased", *places[-1], **fields)
        self.settle()

    def media(self, **features: str) -> None:
        """Emulate `prefers-...` features, and `media="print"`."""
        medium = features.pop("media", "")
        named = [{"name": k.replace("_", "-"), "value": v} for k, v in features.items()]
        self.command("Emulation.setEmulatedMedia", {"media": medium, "features": named})
        self.settle()

    def screenshot(self) -> bytes:
        return base64.b64decode(self.command("Page.captureScreenshot", {"format": "png"})["data"])

    def pdf(self) -> bytes:
        options = {"printBackground": True, "preferCSSPageSize": True}
        return base64.b64decode(self.command("Page.printToPDF", options)["data"])

    def drain(self) -> tuple[list[str], list[str]]:
        """Return console warnings and requested URLs since the last call."""
        messages = [
            entry["message"]
            for entry in self.driver.get_log("browser")
            if entry["level"] in ("SEVERE", "WARNING")
        ]
        urls = []
        for entry in self.driver.get_log("performance"):
            event = json.loads(entry["message"])["message"]
            if event["method"] == "Network.requestWillBeSent":
                urls.append(event["params"]["request"]["url"])
        return messages, urls


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Start Chromium; if that fails, skip the test, or fail it in CI."""
    try:
        from selenium import webdriver
    except ImportError:
        skip_or_fail("selenium is not installed")
    binary = required_program("chromium", "chromium-browser", "chrome")
    driver_file = required_program("chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.chrome.service import Service

    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HOME", str(folder))  # removed with the folder
            patch.setenv("SE_OFFLINE", "true")
            driver = webdriver.Chrome(options=options, service=Service(driver_file))
    except WebDriverException as error:
        skip_or_fail(f"Chromium does not start here: {error.msg}")
    try:
        downloads = folder / "downloads"
        downloads.mkdir()
        download_options = {"behavior": "allow", "downloadPath": str(downloads)}
        driver.execute_cdp_cmd("Browser.setDownloadBehavior", download_options)
        yield Browser(driver, downloads)
    finally:
        driver.quit()
