"""Debian's Chromium, driven by Playwright, for tests of the gateway's page."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = Path("/usr/bin/chromium")
WITHIN = 180_000.0
"""Milliseconds; only for what hangs."""
SIZES = {1280: 800, 390: 844}
"""Widths of a desk's screen and of a phone's, with their heights."""


class Tab:
    """A page in a browser context of its own, with what its console said of errors."""

    def __init__(self, page: Page) -> None:
        self.page, self.errors = page, list[str]()
        self.refused = list[str]()
        """Requests without success, which a browser notes whatever the page makes of them."""
        self.hosts = set[str]()
        """Whom the page asked for anything, each with its port."""
        page.set_default_timeout(WITHIN)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._note)
        page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))

    def _note(self, message: object) -> None:
        kind, text = getattr(message, "type", ""), getattr(message, "text", "")
        if kind in ("error", "warning"):
            told = self.refused if text.startswith("Failed to load resource") else self.errors
            told.append(f"{kind}: {text}")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run Chromium; a machine without it fails, because then nobody has tried the page."""
    if not CHROMIUM.exists():
        raise AssertionError(f"{CHROMIUM} is missing: apt-get install -y chromium")
    with sync_playwright() as play:
        # Chromium's own sandbox takes rights that root in a container has not.
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def tab(browser: Browser, width: int = 1280, theme: str = "light") -> Iterator[Tab]:
    """Open a tab of a width in a theme, and close it at last."""
    scheme = "dark" if theme == "dark" else "light"
    context = browser.new_context(
        viewport={"width": width, "height": SIZES[width]}, color_scheme=scheme
    )
    try:
        yield Tab(context.new_page())
    finally:
        context.close()
