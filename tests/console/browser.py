"""Debian's chromium, without a screen, and a console that listens."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from graphium_db.console import Config, create_app

AXE = (Path(__file__).with_name("vendor") / "axe.min.js").read_text("utf-8")


def programs() -> tuple[str, str] | None:
    """Chromium and its driver, or None."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    driver = shutil.which("chromedriver")
    return (chromium, driver) if chromium and driver else None


def require_browser() -> tuple[str, str]:
    """As `programs`; without it the test is skipped, in CI it fails."""
    found = programs()
    if found is None:
        why = "no chromium and chromedriver on PATH (Debian: apt-get install chromium chromium-driver)"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    return found


@contextmanager
def listening(config: Config) -> Iterator[str]:
    """The console on its port, in a thread; yields its address."""
    server = uvicorn.Server(
        uvicorn.Config(create_app(config), host=config.host, port=config.port, log_level="error", lifespan="on")
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            thread.join(0.02)
        yield f"http://{config.host}:{config.port}"
    finally:
        server.should_exit = True
        thread.join(20)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Browser:
    """One person's browser."""

    def __init__(
        self, address: str, width: int = 1280, height: int = 900, dark: bool = False, scripts: bool = True
    ) -> None:
        chromium, driver = require_browser()
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--lang=en-GB"):  # fmt: skip
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        if not scripts:
            options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
        self.address = address
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme)

    def close(self) -> None:
        self.driver.quit()

    def go(self, path: str) -> Browser:
        self.driver.get(self.address + path)
        return self

    def look_in(self, key: str, *scopes: str) -> Browser:
        self.go(f"/login?key={key}")
        for box in self.all("input[name='scope-0']"):
            if box.is_selected() != (box.get_attribute("value") in scopes):
                box.find_element(By.XPATH, "..").click()
        self.one("form[aria-labelledby='as-tenant'] button").click()
        self.until(lambda: "/login" not in self.driver.current_url)
        return self

    def one(self, css: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, css)

    def all(self, css: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def texts(self, css: str) -> list[str]:
        return [element.text for element in self.all(css)]

    def until(self, condition: Any) -> Any:
        return WebDriverWait(self.driver, 15, 0.05, ignored_exceptions=[Exception]).until(lambda _: condition())

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def complaints(self) -> list[str]:
        """What the browser had to say, of scripts that failed and of what the content security policy stopped."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def accessibility(self) -> list[str]:
        """What axe-core finds on the page, of what is serious or critical."""
        # What fades in is paler on the way.
        self.until(
            lambda: self.run(
                "return !document.querySelector('[aria-busy=true]') && document.getAnimations().length === 0"
            )
        )
        # As a part of the browser and not of the page, whose policy lets nothing in.
        self.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": AXE})
        found = self.driver.execute_cdp_cmd(
            "Runtime.evaluate",
            {
                "expression": "axe.run(document, {resultTypes: ['violations'], "
                "rules: {'label-content-name-mismatch': {enabled: true}}}).then(r => r.violations.filter("
                "v => ['serious', 'critical'].includes(v.impact)).map(v => v.id + ': ' + v.nodes.map(n => n.target.join(' ') + ' ' + (n.failureSummary || '')).join(' | ')))",
                "awaitPromise": True,
                "returnByValue": True,
            },
        )
        return list(found["result"]["value"])
