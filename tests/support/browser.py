"""Debian's chromium, driven by Selenium."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

FLAGS = "headless=new no-sandbox disable-gpu disable-quic no-first-run disable-background-networking \
disable-component-update disable-sync disable-dev-shm-usage force-prefers-reduced-motion"


@contextmanager
def headless(profile: Path) -> Iterator[Chrome]:
    """A headless browser with a profile of its own; skips where there is none, fails where CI insists on it."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (browser and driver):
        reason = "no chromium and chromedriver: apt-get install chromium chromium-driver"
        if os.environ.get("HOPBENCH_REQUIRE_ALL"):
            pytest.fail(reason)
        pytest.skip(reason)
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in FLAGS.split():
        options.add_argument(f"--{flag}")
    options.add_argument(f"--user-data-dir={profile}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    session = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        yield session
    finally:
        session.quit()
