"""Opens pages in Chromium, and collects what the browser and axe-core say of them."""

import contextlib
import os
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Dialog, Page, async_playwright

_VIOLATIONS: Final = {"resultTypes": ["violations"]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """In what way a page is looked at; axe-core judges what is on screens."""

    width: int
    scheme: Literal["light", "dark"]
    medium: Literal["screen", "print"] = "screen"


DESK_LIGHT: Final = Look(width=1200, scheme="light")
DESK_DARK: Final = Look(width=1200, scheme="dark")
PHONE: Final = Look(width=360, scheme="light")
PAPER: Final = Look(width=794, scheme="dark", medium="print")


@dataclass(slots=True)
class Seen:
    """What was seen of one page."""

    problems: list[str] = field(default_factory=list)
    """Messages on the console, errors, dialogs, and findings of axe-core."""
    requests: list[str] = field(default_factory=list)
    """The addresses that it loaded, itself included."""
    widths: tuple[int, int] = (0, 0)
    """Of the window, and of the page in it: if it is larger, the page moves sideways."""


@contextlib.asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Run Debian's browser while a test lasts."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("no Chromium: install Debian's package chromium")
    # The sandbox of Chromium refuses root, which tests often are.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=arguments)
        try:
            yield browser
        finally:
            await browser.close()


async def look_at(browser: Browser, file: Path, look: Look) -> Seen:
    """Open a file, unfold all that unfolds, and collect what is wrong with it."""
    seen = Seen()
    context = await browser.new_context(
        viewport={"width": look.width, "height": 800}, color_scheme=look.scheme
    )
    try:
        page = await context.new_page()
        _listen(page, seen)
        await page.emulate_media(media=look.medium)
        await page.goto(file.as_uri())
        await page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        widths = await page.evaluate("[innerWidth, document.documentElement.scrollWidth]")
        seen.widths = widths[0], widths[1]
        if look.medium == "screen":
            seen.problems += await _judge(page)
    finally:
        await context.close()
    return seen


def _listen(page: Page, seen: Seen) -> None:
    async def dismiss(dialog: Dialog) -> None:
        seen.problems.append(f"dialog: {dialog.message}")
        await dialog.dismiss()

    page.on("dialog", dismiss)
    page.on("console", lambda message: seen.problems.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: seen.problems.append(f"error: {error}"))
    page.on("request", lambda request: seen.requests.append(request.url))


async def _judge(page: Page) -> list[str]:
    results = await Axe().run(page, options=_VIOLATIONS)
    found: list[dict[str, Any]] = results.response["violations"]
    return [
        f"axe: {one['id']}: {node['target']}: {node['failureSummary']}"
        for one in found
        for node in one["nodes"]
    ]
