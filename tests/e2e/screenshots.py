"""Take the README's picture of the page: python -m tests.e2e.screenshots [FILE]

A small swarm learns a text, and the page is asked a prompt: that is the picture, in light colours.
"""

import sys
from pathlib import Path

from playwright.sync_api import Page

from giaann_p2p.local.swarm import LocalSwarm
from tests.e2e.browser import chromium, tab
from tests.helpers import DATA

PICTURE = Path(__file__).parents[2] / "docs" / "page.png"
PROMPT = "In the summer many workers"
TOKEN = 1
"""The token that is opened in the picture."""
HEIGHT = 560


def main() -> None:
    """Write the picture."""
    picture = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE
    swarm = LocalSwarm(
        storages=3,
        computes=2,
        gateways=1,
        replicas=3,
        shards=64,
        arguments={"gateway": ["--allow-training"]},
    )
    with swarm, chromium() as browser, tab(browser) as found:
        page = found.page
        page.goto(f"http://{swarm.peer('gateway-1').listen}/")
        taught(page, (DATA / "wiki.txt").read_text())
        asked(page)
        page.set_viewport_size({"width": 1280, "height": HEIGHT})
        page.screenshot(path=picture)
    print(f"{picture}: {picture.stat().st_size / 1000:.0f} kB")


def taught(page: Page, text: str) -> None:
    """Teach the swarm a text."""
    page.get_by_role("link", name="Learning").click()
    page.fill("#lesson", text)
    page.get_by_role("button", name="Teach", exact=True).click()
    page.locator(".lessons li.learned").wait_for()


def asked(page: Page) -> None:
    """Ask a prompt, and open one of the tokens of its answer."""
    page.get_by_role("link", name="Ask").click()
    page.fill("#prompt", PROMPT)
    page.keyboard.press("Enter")
    page.locator(".answer .text .token").nth(TOKEN).wait_for()
    page.locator(".caret").wait_for(state="detached")
    page.locator(".answer .text .token").nth(TOKEN).click()
    page.locator(".token-panel .bars li").first.wait_for()
    page.mouse.move(0, HEIGHT - 1)


if __name__ == "__main__":
    main()
