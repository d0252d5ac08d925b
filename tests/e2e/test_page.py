"""The gateway's page in a real browser, over a real swarm: it shows, asks, walks and teaches."""

import http.client
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from giaann_p2p import __version__
from giaann_p2p.gateway.brain_backend import BrainBackend
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.model.subwords.spec import subword_spec
from giaann_p2p.solo.brain import Brain
from tests.e2e.browser import SIZES, WITHIN, chromium, tab
from tests.e2e.page_stubs import LONG, SIZE, Moving, Vast
from tests.helpers import DATA
from tests.unit.gateway.serving import served

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
SHARDS = 16
SHOWN_WITHIN = 2.0
"""Seconds in which the page shows a killed peer, once the gateway tells of it."""
SHOWN = """(row) => new MutationObserver((_, watch) => {
    if (!document.querySelector(row)) return;
    globalThis.shownAt = Date.now() / 1000;
    watch.disconnect();
}).observe(document.body, { subtree: true, childList: true, attributes: true })"""
"""Notes in the page when it shows a row: a driver on a busy machine notices seconds later."""
PROMPT = "Anarchism is a political philosophy"
ATTACK = '<img src=x onerror="document.title=1">'
TAUGHT = (
    "The gardener of the palace planted a golden orchid beside the marble fountain.\n"
    f"The young wizard wrote {ATTACK} <script>document.title=2</script> on the tower.\n"
)
DROPPED = """(onto) => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File(["Bees"], "bees.txt"));
    const drop = new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true });
    return document.querySelector(onto).dispatchEvent(drop);
}"""
"""Drops a file; returns whether the browser may do as usual: show the file instead of the page."""
WHOLE = "(one) => one.scrollHeight <= one.clientHeight"
VIEWS = {
    "swarm": ".shard",
    "ask": "#prompt",
    "columns": ".nouns a",
    "columns/anarchism": ".graph .target",
    "learning": "#lesson",
}
"""The views, each with what is there once it is shown."""
expect.set_options(timeout=WITHIN)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def swarm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalSwarm]:
    """A swarm with a gateway, which has learned a text."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        with LocalSwarm(
            tmp_path_factory.mktemp("swarm") / "swarm",
            profile="words",
            storages=2,
            computes=1,
            gateways=1,
            replicas=2,
            shards=SHARDS,
            arguments={"gateway": ["--allow-training"]},
        ) as found:
            taught(found, (DATA / "quick.txt").read_text())
            yield found


def taught(swarm: LocalSwarm, text: str) -> None:
    line = http.client.HTTPConnection(swarm.peer("gateway-1").listen, timeout=WITHIN / 1000)
    line.request("POST", "/api/train?name=quick.txt", text, {"Content-Type": "text/plain"})
    assert b"event: done" in line.getresponse().read()
    line.close()


@pytest.fixture
def page(browser: Browser, swarm: LocalSwarm) -> Iterator[Page]:
    """The page at a desk; an error in its console fails the test."""
    with tab(browser) as found:
        show(found.page, swarm, "swarm")
        yield found.page
        assert found.errors == []


def show(page: Page, swarm: LocalSwarm, view: str) -> None:
    page.goto(f"http://{swarm.peer('gateway-1').listen}/#/{view}")
    page.locator(VIEWS[view]).first.wait_for()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", SIZES)
def test_every_view_is_for_everybody(
    browser: Browser, swarm: LocalSwarm, tmp_path: Path, width: int, theme: str
) -> None:
    with tab(browser, width, theme) as found:
        for view in VIEWS:
            show(found.page, swarm, view)
            if view == "ask":
                answered(found.page)
                found.page.locator(".answer .text .token").nth(3).click()
                found.page.locator(".token-panel .bars li").first.wait_for()
            looked_at(found.page, tmp_path / f"{view.replace('/', '-')}-{width}-{theme}.png")
        assert found.errors + found.refused == []
        assert found.hosts == {swarm.peer("gateway-1").listen}


def looked_at(page: Page, picture: Path, *, whole: bool = True) -> None:
    """Take a picture, and see that nothing keeps people out and nothing sticks out sideways."""
    page.screenshot(path=picture, full_page=whole)
    assert picture.stat().st_size > 0
    found = Axe().run(page).response["violations"]
    grave = [
        (one["id"], [node["html"][:200] for node in one["nodes"]])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
    assert grave == [], picture.name
    beyond = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(beyond) <= 0, picture.name


def test_the_swarm_is_shown(page: Page, swarm: LocalSwarm) -> None:
    expect(page.locator(".verdict h2")).to_have_text("Healthy")
    expect(page.locator(".peers tbody tr")).to_have_count(3)
    expect(page.locator(".peers tbody tr", has_text=__version__)).to_have_count(3)
    expect(page.locator(".shard.whole")).to_have_count(SHARDS)
    page.locator(".map").focus()
    page.keyboard.press("End")
    expect(page.locator(".shards .detail")).to_contain_text(f"Shard {SHARDS - 1}: 2 of 2 ready")
    page.get_by_role("button", name="Theme").click()
    page.get_by_role("button", name="Theme").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 20, 23)"


def answered(page: Page, prompt: str = PROMPT) -> None:
    page.fill("#prompt", prompt)
    page.keyboard.press("Enter")
    expect(page.locator(".answer [role=status]")).to_contain_text("token")
    page.locator(".answer .text .token").nth(3).wait_for()
    page.locator(".caret").wait_for(state="detached")


def test_a_prompt_streams_and_a_token_tells_its_rivals(page: Page, swarm: LocalSwarm) -> None:
    page.set_viewport_size({"width": 390, "height": 400})
    page.get_by_role("link", name="Ask").click()
    expect(page.locator("main")).to_be_focused()
    assert page.evaluate("scrollY") == 0
    page.set_viewport_size({"width": 1280, "height": 800})
    answered(page)
    tokens = page.locator(".answer .text .token")
    expect(page.locator(".answer .text .token.recall").first).to_be_visible()
    tokens.nth(0).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator("#token-title")).to_contain_text("Token 2")
    page.locator(".token-panel .bars li").first.wait_for()
    column = page.locator(".way a").first.inner_text()
    page.locator(".way a").first.click()
    expect(page.locator("#column-title")).to_contain_text(column)
    page.go_back()
    expect(tokens.nth(3)).to_be_visible()  # the answer is still there


def test_errors_are_words(page: Page, swarm: LocalSwarm) -> None:
    show(page, swarm, "ask")
    page.route("**/api/prompt", lambda route: route.abort())
    page.fill("#prompt", PROMPT)
    page.keyboard.press("Enter")
    expect(page.locator(".answer .error")).to_contain_text("cannot be reached")
    page.unroute("**/api/prompt")


def test_words_that_were_never_learned_are_named_with_their_noun(browser: Browser) -> None:
    begun = json.dumps({"completion": "", "unknown": ["zorp", "worker/in", "worker/the"]})
    body = f"event: begun\ndata: {begun}\n\nevent: done\ndata: {{}}\n\n"
    with served() as at, tab(browser) as found:
        found.page.route("**/api/prompt", lambda route: route.fulfill(body=body))
        found.page.goto(f"{at.url}/#/ask")
        found.page.fill("#prompt", PROMPT)
        found.page.keyboard.press("Enter")
        told = "Never learned: zorp; in, the near worker."
        expect(found.page.locator(".answer")).to_contain_text(told)


def test_a_column_is_found_and_walked(page: Page, swarm: LocalSwarm) -> None:
    show(page, swarm, "columns")
    nouns = page.locator(".nouns li").all_inner_texts()
    assert [one for one in nouns if not re.fullmatch(r"\S+ [\d,]+", one)] == []
    page.fill("#noun", "anarchi")
    page.locator("#nouns li", has_text="anarchism").first.wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("#column-title")).to_contain_text("anarchi")
    target = page.locator(".graph .target").first
    to = (target.get_attribute("href") or "").rpartition("/")[2]
    target.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#column-title")).to_have_text(f"The column of {to}")
    assert page.locator(".words tbody tr").count() > 0
    page.go_back()
    expect(page.locator("#column-title")).to_contain_text("anarchi")
    page.fill("#noun", "zorp")
    page.keyboard.press("Enter")
    expect(page.locator(".columns .error")).to_contain_text("never learned")


def test_a_text_is_taught_and_then_known_and_stays_text(page: Page, swarm: LocalSwarm) -> None:
    show(page, swarm, "learning")
    page.fill("#lesson", TAUGHT)
    page.get_by_label("Name").fill(ATTACK)
    page.get_by_role("button", name="Teach", exact=True).click()
    page.locator(".lessons li.learned").wait_for()
    expect(page.locator(".lesson-name")).to_have_text(ATTACK)
    expect(page.locator(".contributors tbody tr").first).to_be_visible()
    expect(page.locator(".jobs tbody")).to_contain_text("taught here")
    show(page, swarm, "ask")
    answered(page, "The gardener of the palace planted a golden")
    expect(page.locator(".answer .text")).to_contain_text("orchid beside the marble fountain")
    answered(page, "The young wizard wrote")
    expect(page.locator(".answer .text")).to_contain_text("<")  # the prompt has none
    assert page.locator("#page img").count() == 1  # the page's own
    assert page.title() == "Ask · local · giaann"


def test_a_brain_its_suggestions_and_its_errors_are_for_everybody(
    browser: Browser, tmp_path: Path
) -> None:
    with (
        Brain(subword_spec()) as brain,
        served(lambda: BrainBackend(brain, "bees")) as at,
        tab(browser, 390) as found,
    ):
        brain.train(DATA / "quick.txt")
        page = found.page
        for view, there in {**VIEWS, "swarm": ".figures", "learning": ".jobs tbody tr"}.items():
            page.goto(f"{at.url}/#/{view}")
            page.locator(there).first.wait_for()
            if view == "columns":
                page.locator("#noun").press("ArrowDown")
                page.locator("#nouns li").nth(11).wait_for()
                assert page.locator(".suggestions").evaluate(WHOLE)
            looked_at(page, tmp_path / f"brain-{view.replace('/', '-')}.png")
        page.goto(f"{at.url}/#/columns/zorp")
        page.locator(".columns .error").wait_for()
        looked_at(page, tmp_path / "brain-error.png")
        assert found.errors == []
        assert found.hosts == {f"127.0.0.1:{at.port}"}


def test_subwords_say_how_sure_they_are(browser: Browser) -> None:
    with Brain(subword_spec()) as brain:
        brain.train(DATA / "quick.txt")
        with served(lambda: BrainBackend(brain, "bees")) as at, tab(browser) as found:
            page = found.page
            page.goto(at.url)
            expect(page.locator(".figures")).to_contain_text("connections")
            page.goto(f"{at.url}/#/ask")
            page.get_by_label("Temperature").fill("0.5")
            answered(page)
            page.locator(".answer .text .token").nth(1).hover()
            expect(page.locator(".answer .detail")).to_contain_text("%")
            page.locator(".answer .text .token").nth(1).click()
            expect(page.locator(".token-panel h3").first).to_have_text("Candidates")
            expect(page.locator(".token-panel .bars li.won")).to_have_count(1)
            expect(page.locator(".token-panel .bars .number").first).to_contain_text("%")
            page.goto(f"{at.url}/#/learning")
            expect(page.locator(".teach")).to_contain_text("--allow-training")
            assert found.errors == []


BOXES = """(all) => all.map((one) => {
    const { left, top, right, bottom } = one.getBoundingClientRect();
    return { text: one.textContent.trim(), left, top, right, bottom };
})"""


def boxes(page: Page, of: str) -> list[dict[str, Any]]:
    """Return where elements are, with their texts."""
    found: list[dict[str, Any]] = page.locator(of).evaluate_all(BOXES)
    return found


def overlaps(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return (
        min(one["right"], other["right"]) - max(one["left"], other["left"]) > 0.5
        and min(one["bottom"], other["bottom"]) - max(one["top"], other["top"]) > 0.5
    )


@pytest.mark.parametrize("width", SIZES)
def test_a_vast_column_fits(browser: Browser, tmp_path: Path, width: int) -> None:
    with served(Vast) as at, tab(browser, width) as found:
        page = found.page
        page.goto(f"{at.url}/#/columns/{LONG}")
        page.get_by_role("button", name="Show more").click()
        expect(page.locator(".words tbody tr")).to_have_count(256)
        expect(page.locator(".words .more")).to_contain_text(f"{SIZE - 256:,} more")
        looked_at(page, tmp_path / f"vast-{width}.png", whole=False)  # the table is long
        for card, inside in {
            "section:has(.graph)": ".graph svg, .graph text, .graph rect, header *",
            ".words": ":is(table, tr, th, td, .leads *, header *)",
        }.items():
            (frame,) = boxes(page, card)
            within = boxes(page, f"{card} :is({inside})")
            assert len(within) > 20
            for one in within:
                assert one["left"] >= frame["left"], one
                assert one["right"] <= frame["right"], one
        labels = boxes(page, ".graph text")
        assert len(labels) == 2 + 16 + 16  # two titles
        for cells in (labels, boxes(page, ".words tbody :is(th, td)")):
            clashes = [(one, two) for one, two in pairwise_near(cells) if overlaps(one, two)]
            assert clashes == []
        assert found.errors == []


def pairwise_near(cells: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield pairs of boxes: each with all that begin above its lower edge."""
    cells = sorted(cells, key=lambda one: float(one["top"]))
    for at, one in enumerate(cells):
        for other in cells[at + 1 :]:
            if other["top"] > one["bottom"]:
                break
            yield one, other


def test_what_is_repaired_and_what_moves_is_told_apart(browser: Browser) -> None:
    with served(Moving) as at, tab(browser) as found:
        page = found.page
        page.goto(at.url)
        expect(page.locator(".repair > p")).to_have_text("3 of 4 replicas ready, 1 being copied")
        expect(page.locator(".repair .copying li")).to_have_text("bert 1 to go")
        expect(page.locator(".moves > p")).to_have_text(
            "1 copy on the way to new owners; the old ones serve until then, "
            "and 1 old copy not dropped yet"
        )
        expect(page.locator(".moves .copying li")).to_have_text("bert 1 to go")
        assert found.errors == []


def escape(page: Page) -> None:
    page.locator("#prompt").press("Escape")


def escape_elsewhere(page: Page) -> None:
    page.locator("#answer-title").click()
    page.keyboard.press("Escape")


def press_stop(page: Page) -> None:
    page.get_by_role("button", name="Stop").click()


@pytest.mark.parametrize("end", [escape, escape_elsewhere, press_stop])
@pytest.mark.parametrize("said", [0, 2])
def test_a_prompt_is_stopped_at_the_gateway_too(
    browser: Browser, end: Callable[[Page], None], said: int
) -> None:
    with served() as at, tab(browser) as found:
        at.backend.held_at = said
        found.page.goto(f"{at.url}/#/ask")
        found.page.fill("#prompt", PROMPT)
        found.page.keyboard.press("Enter")
        at.run(at.backend.holding.wait())
        status = found.page.locator(".answer [role=status]")
        expect(status).to_have_text(f"{said} tokens …" if said else "thinking …")
        assert at.backend.now == 1
        end(found.page)
        at.run(at.backend.over.wait())
        assert at.backend.now == 0
        expect(status).to_have_text(f"stopped after {said} tokens")
        expect(found.page.locator(".caret")).to_have_count(0)
        assert found.errors == []


def test_escape_closes_a_token_before_it_stops_an_answer(browser: Browser) -> None:
    with served() as at, tab(browser) as found:
        at.backend.held_at = 2
        found.page.goto(f"{at.url}/#/ask")
        found.page.fill("#prompt", PROMPT)
        found.page.keyboard.press("Enter")
        found.page.locator(".answer .text .token").nth(1).click()
        found.page.get_by_role("button", name="Close").press("Escape")
        expect(found.page.locator(".token-panel")).to_have_count(0)
        assert at.backend.now == 1
        at.loop.call_soon_threadsafe(at.backend.go.set)
        expect(found.page.locator(".answer [role=status]")).to_contain_text("to the end")


def drop(page: Page, onto: str, *files: Path) -> None:
    """Drag files from outside the browser onto an element, as a user does."""
    box = page.locator(onto).bounding_box()
    assert box is not None
    line = page.context.new_cdp_session(page)
    data = {"items": [], "files": [str(file) for file in files], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        where = {"type": kind, "x": box["x"] + 40, "y": box["y"] + box["height"] / 2}
        line.send("Input.dispatchDragEvent", {**where, "data": data})
    line.detach()


def test_a_dropped_file_is_taught_if_it_is_a_text(browser: Browser, tmp_path: Path) -> None:
    text, rubbish = tmp_path / "orchid.txt", tmp_path / "rubbish.bin"
    text.write_text(TAUGHT)
    rubbish.write_bytes(b"\xff\xfe\x00")
    with (
        Brain(subword_spec()) as brain,
        served(lambda: BrainBackend(brain, "bees", training=True)) as at,
        tab(browser) as found,
    ):
        found.page.goto(f"{at.url}/#/learning")
        drop(found.page, ".teach", rubbish, text)
        found.page.locator(".lessons li.learned").wait_for()
        expect(found.page.locator(".lesson-name")).to_have_text("orchid.txt")
        expect(found.page.locator(".teach [role=alert]")).to_contain_text("rubbish.bin cannot")
        assert found.errors == []


def test_a_dropped_file_is_refused_in_words_where_nothing_is_taught(
    browser: Browser, tmp_path: Path
) -> None:
    text = tmp_path / "orchid.txt"
    text.write_text(TAUGHT)
    with served() as at, tab(browser) as found:
        found.page.goto(f"{at.url}/#/learning")
        found.page.locator(".teach").wait_for()
        assert not found.page.evaluate(f"({DROPPED})('.top')")
        drop(found.page, ".teach", text)
        expect(found.page.locator(".teach [role=alert]")).to_contain_text("teaches nothing")
        assert found.page.url == f"{at.url}/#/learning"
        assert found.errors == []


def test_a_killed_peer_is_shown(page: Page, swarm: LocalSwarm) -> None:
    victim = swarm.peer("storage-2").peer[:8]
    noted = list[float]()
    listener = threading.Thread(target=listen, args=(swarm, victim, noted))
    row = f'tr[data-peer="{victim}"][data-state="silent"]'
    page.evaluate(SHOWN, row)
    listener.start()
    killed = time.time()
    swarm.kill("storage-2")
    page.locator(row).wait_for()
    shown = page.evaluate("shownAt")
    expect(page.locator(".shard.thin")).to_have_count(SHARDS)
    expect(page.locator(".verdict h2")).to_have_text("Degraded")
    listener.join(WITHIN / 1000)
    print(f"a killed peer: told {noted[0] - killed:.2f} s, shown {shown - killed:.2f} s after")
    assert shown - noted[0] < SHOWN_WITHIN


def listen(swarm: LocalSwarm, victim: str, noted: list[float]) -> None:
    """Note when the gateway tells that a peer is silent."""
    line = http.client.HTTPConnection(swarm.peer("gateway-1").listen, timeout=WITHIN / 1000)
    line.request("GET", "/api/events")
    name = ""
    for row in line.getresponse():
        if row.startswith(b"event: "):
            name = row[7:].decode().strip()
        elif row.startswith(b"data: ") and name == "peers":
            peers = json.loads(row[6:])["peers"]
            if any(one["name"] == victim and one["silent"] for one in peers):
                noted.append(time.time())
                break
    line.close()


def test_a_swarm_that_is_gone_and_comes_back_needs_no_reload(page: Page, swarm: LocalSwarm) -> None:
    gateway = swarm.peer("gateway-1").pid
    page.evaluate("globalThis.isLoadedOnce = true")
    peers = [peer for peer in swarm.peers() if peer.name != "gateway-1"]
    for peer in peers:
        if peer.code is None:
            swarm.kill(peer.name)
    expect(page.locator(".verdict h2")).to_have_text("Unreachable")
    page.get_by_role("link", name="Ask").click()
    expect(page.locator("main")).to_be_focused()  # the view takes the focus once it is shown
    page.fill("#prompt", PROMPT)
    page.keyboard.press("Enter")
    expect(page.locator(".answer .error")).to_contain_text("cannot be reached now")
    for peer in peers:
        swarm.restart(peer.name)
    swarm.wait_ready([peer.name for peer in peers])
    page.get_by_role("link", name="Swarm").click()
    expect(page.locator(".verdict h2")).to_have_text("Healthy")
    expect(page.locator('.peers tr[data-state="active"]')).to_have_count(3)
    expect(page.locator(".shard.whole")).to_have_count(SHARDS)
    page.get_by_role("link", name="Ask").click()
    expect(page.locator("main")).to_be_focused()
    answered(page)
    assert page.evaluate("globalThis.isLoadedOnce")
    assert swarm.peer("gateway-1").pid == gateway  # it never started again


def test_a_gateway_that_ends_is_waited_for(browser: Browser, swarm: LocalSwarm) -> None:
    with tab(browser) as found:
        show(found.page, swarm, "swarm")
        swarm.kill("gateway-1")
        expect(found.page.locator(".line")).to_have_text("reconnecting")
        expect(found.page.locator(".banner")).to_contain_text("Reconnecting")
