"""The page follows what the gateway tells it while it is open."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from giaann_p2p.gateway.limits import Limits
from tests.e2e.browser import WITHIN, chromium, tab
from tests.e2e.page_stubs import Pupil, Resharded
from tests.unit.gateway.serving import served

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
