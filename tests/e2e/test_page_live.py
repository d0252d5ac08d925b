"""The page follows what the gateway tells it while it is open."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Route, expect

from giaann_p2p.gateway.limits import Limits
from tests.e2e.browser import WITHIN, chromium, tab
from tests.e2e.page_stubs import Pupil, Resharded
from tests.unit.gateway.serving import Served, served

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
expect.set_options(timeout=WITHIN)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


def test_replicas_are_counted_anew_after_a_reshard(browser: Browser) -> None:
    with served(Resharded) as at, tab(browser) as found:
        found.page.goto(at.url)
        repair = found.page.locator(".repair > p")
        expect(repair).to_contain_text("3 of 4 replicas ready")
        at.backend.wanted = 3
        expect(repair).to_contain_text("4 of 12 replicas ready")
        assert found.errors == []


def test_a_text_of_any_letters_may_be_as_long_as_the_gateway_takes(
    browser: Browser, tmp_path: Path
) -> None:
    letters = '"Bees\\make\thoney," he wrote.\n' * 20 + "ünd" * 9
    file, name = tmp_path / "50 % & more.txt", "🐝" * 40
    file.write_text(letters)
    limits = Limits(upload=file.stat().st_size, drain_seconds=1.0)
    with served(lambda: Pupil(training=True), limits=limits) as at, tab(browser) as found:
        page = found.page
        page.goto(f"{at.url}/#/learning")
        page.get_by_label("Text files").set_input_files(file)
        page.locator(".lessons li.learned").wait_for()
        page.fill("#lesson", name)  # whose first words end within a letter of two halves
        page.get_by_role("button", name="Teach", exact=True).click()
        expect(page.locator(".lessons li.learned")).to_have_count(2)
        assert at.backend.taught == [(file.name, letters), ("🐝" * 30, name)]
        assert found.errors == []


@pytest.mark.parametrize(
    ("report", "told"),
    [
        ({"interrupted": True}, "not finished: learned 3 of 4 sentences"),
        (
            {"complete": False, "known": True, "given_up": {"1": {}}},  # other chunks are known
            "not finished: learned 3 of 4 sentences; gave up 1 chunk",
        ),
    ],
    ids=["interrupted", "given up"],
)
def test_a_lesson_that_ends_before_its_text_is_not_finished(
    browser: Browser, report: dict[str, Any], told: str
) -> None:
    with served(lambda: Pupil(training=True)) as at, tab(browser) as found:
        at.backend.report = {"sentences": 4, "sequences": 3, **report}
        found.page.goto(f"{at.url}/#/learning")
        found.page.fill("#lesson", "Bees make honey.")
        found.page.get_by_role("button", name="Teach", exact=True).click()
        expect(found.page.locator(".lessons li.unfinished > :last-child")).to_have_text(told)
        assert found.errors == []


LINES = """() => {
    globalThis.lines = [];
    const line = document.querySelector(".line");
    new MutationObserver(() => globalThis.lines.push(line.textContent))
        .observe(line, { subtree: true, childList: true, characterData: true });
}"""
"""Notes in the page each change of what it says of its connection."""
DRAWN = "() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))"


def test_a_late_failure_of_an_earlier_connection_leaves_the_present_one(browser: Browser) -> None:
    with served() as at, tab(browser) as found:
        page, held = found.page, list[Route]()

        def first_is_held(route: Route) -> None:
            if held:
                route.continue_()
            else:
                held.append(route)

        page.route("**/api/info", first_is_held)
        with page.expect_request("**/api/info"):
            page.goto(at.url)
        with page.expect_response("**/api/info"):
            disconnect(at)
        expect(page.locator(".line")).to_have_text("live")
        page.evaluate(LINES)
        with page.expect_event("requestfailed"):
            held[0].abort()
        page.evaluate(DRAWN)
        assert page.evaluate("globalThis.lines") == []
        assert found.errors == []


def disconnect(at: Served) -> None:
    """End the streams of all listeners, as a proxy does that has had enough."""
    at.loop.call_soon_threadsafe(at.gateway.context.draining.set)
    at.run(at.gateway.feed.end())
    while at.gateway.guard.listeners:
        time.sleep(0.01)
    at.loop.call_soon_threadsafe(at.gateway.context.draining.clear)
