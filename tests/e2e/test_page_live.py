"""The page follows what the gateway tells it while it is open."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.browser import WITHIN, chromium, tab
from tests.e2e.page_stubs import Resharded
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
