"""Texts are learned by a swarm as by one machine, whatever happens to its peers meanwhile."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from giaann_p2p.client import training
from giaann_p2p.client.trained import Lacking, LackingPeers, TrainProgress, TrainReport
from giaann_p2p.client.training import MOST_BATCH, TrainOptions
from giaann_p2p.errors import UsageError
from giaann_p2p.model.spec import CHUNK
from giaann_p2p.sim.lessons import SPEC
from giaann_p2p.solo.corpus import opened
from giaann_p2p.solo.jobs import job_id
from giaann_p2p.swarm.members.standing import DAY
from giaann_p2p.swarm.training import schedule
from giaann_p2p.swarm.wire.edition import Editions
from giaann_p2p.swarm.wire.identity import name_of
from giaann_p2p.swarm.wire.member_messages import AskManifest
from giaann_p2p.swarm.wire.messages import Refusal, decode, encode
from giaann_p2p.swarm.wire.training_messages import Beat, Learned, Skip
from tests.unit.node.helpers import FOUNDER, GIB, JOB, MANIFEST, Town, lesson, play
from tests.unit.node.training.helpers_compute import FATAL, Visitor, Workshop, alone, written

TEXT = written(640)
"""Ten chunks."""
SHORT, SCARCE = written(256), 100_000
"""Four chunks, and bytes of memory that are too few for all of them."""


def holds(town: Town, text: str, epochs: int = 1) -> Callable[[], bool]:
    """Return whether every replica is what one machine learns from a text."""

    def check() -> bool:
        if not town.settled():
            return False
        sums: dict[int, set[int]] = {}
        for found in town.digests():
            for shard, digest in found.items():
                sums.setdefault(shard, set()).add(digest)
        if any(len(found) > 1 for found in sums.values()):
            return False
        return sum(found.pop() for found in sums.values()) % (1 << 256) == alone(text, epochs)

    return check


async def founded(town: Town, storages: int = 3) -> Visitor:
    for _ in range(storages):
        town.add()
    await town.until(town.settled)
    return Visitor(town)


def test_a_text_is_learned_by_many_as_by_one_and_only_once() -> None:
    async def story(town: Town) -> None:
        visitor = await founded(town)
        shops = [Workshop(town, number) for number in (101, 102)]
        await town.until(lambda: len(visitor.workers()) == 2)
        (report,) = await visitor.trainer.train(TEXT, TrainOptions(batch=3, check=0))
        assert report.complete
        assert (report.chunks, report.chunks_known, report.sentences) == (10, 0, 640)
        assert (report.checked, report.liars) == (0, set())
        assert report.sequences == 640 - 13
        assert report.skips.counts == {"too short": 13}
        assert report.skips.first_lines == {"too short": 8}
        assert report.pushed > 0
        assert all(shop.slow.learned for shop in shops)
        await town.until(holds(town, TEXT))
        (again,) = await visitor.trainer.train(TEXT, TrainOptions(policy="random"))
        assert (again.chunks, again.chunks_known, again.sentences) == (0, 10, 0)
        assert again.known
        assert sum(len(shop.slow.learned) for shop in shops) == 10
        for shop in shops:
            await shop.end()
        await visitor.close()

    play(story)


def test_each_chunk_is_learned_by_as_many_as_have_to_agree() -> None:
    async def story(town: Town) -> None:
        visitor = await founded(town)
        shops = [Workshop(town, number) for number in (101, 102, 103)]
        await town.until(lambda: len(visitor.workers()) == 3)
        (report,) = await visitor.trainer.train(TEXT, TrainOptions(redundancy=2))
        assert report.complete
        assert (report.chunks, report.checked) == (10, 10)
        assert sum(len(shop.slow.learned) for shop in shops) == 20
        await town.until(holds(town, TEXT))
        for shop in shops:
            await shop.end()
        await visitor.close()

    play(story)


def test_newcomers_are_checked_by_others(monkeypatch: pytest.MonkeyPatch) -> None:
    # Else who has nothing left to do may be given what another one is late with.
    monkeypatch.setattr(schedule, "_LATE", 1e6)

    async def story(town: Town) -> None:
        visitor = await founded(town)
        shops = [Workshop(town, number) for number in (101, 102)]
        await town.until(lambda: len(visitor.workers()) == 2)
        (report,) = await visitor.trainer.train(TEXT)
        assert report.complete
        assert 1 <= report.checked < 10
        assert sum(len(shop.slow.learned) for shop in shops) == 10 + report.checked
        for shop in shops:
            await shop.end()
        await visitor.close()

    play(story)


def test_who_is_alone_is_told_that_more_have_to_agree() -> None:
    async def story(town: Town) -> None:
        visitor = await founded(town)
        shop = Workshop(town, 101)
        await town.until(lambda: len(visitor.workers()) == 1)
        with pytest.raises(LackingPeers, match=r"2 have to agree on each.*Nothing of text is"):
            await visitor.trainer.train(TEXT, TrainOptions(redundancy=2, patience=20))
        await shop.end()
        await visitor.close()

    play(story)


def test_a_swarm_that_is_full_says_so_and_goes_on_when_there_is_room() -> None:
    async def story(town: Town) -> None:
        town.capacity = SCARCE
        visitor = await founded(town)
        shop = Workshop(town, 101)
        await town.until(lambda: len(visitor.workers()) == 1)
        seen: list[tuple[TrainReport, TrainProgress]] = []
        with pytest.raises(LackingPeers, match="the swarm is full: there is no room left") as ended:
            await visitor.trainer.train(
                SHORT,
                TrainOptions(patience=4, check=0),
                watch=lambda report, standing: seen.append((report, standing)),
            )
        report, standing = seen[-1]
        assert 0 < report.chunks < 4
        assert f"What was learned is kept ({report.chunks} chunk" in str(ended.value)
        assert all(name_of(house.me) in str(ended.value) for house in town.houses)
        assert standing.lacking is Lacking.ROOM
        assert "start more storage peers" in standing.remedy
        assert visitor.visit.overview().verdict == "full"
        town.capacity = GIB
        for _ in range(3):
            town.add()
        (again,) = await visitor.trainer.train(SHORT, TrainOptions(check=0))
        assert again.complete
        assert again.chunks_known + again.chunks == 4
        await town.until(lambda: visitor.visit.overview().verdict == "healthy")
        await shop.end()
        await visitor.close()

    play(story)


def test_it_is_said_when_only_peers_that_went_away_make_an_update_count() -> None:
    async def story(town: Town) -> None:
        visitor = await founded(town)
        shop, old = Workshop(town, 101), list(town.houses)
        await town.until(lambda: len(visitor.workers()) == 1)
        book = shop.node.lookout.view.standing
        seconds = [(house.me, int(10 * DAY)) for house in old]
        book.restore(msgspec.msgpack.encode(seconds))
        for house in old:
            await house.die()
        for _ in range(3):
            town.add()
        await town.until(town.settled)
        seen: list[TrainProgress] = []
        with pytest.raises(LackingPeers, match="counts only when a storage peer") as ended:
            async with asyncio.timeout(300):
                await visitor.trainer.train(
                    SHORT,
                    TrainOptions(patience=20, check=0),
                    watch=lambda report, standing: seen.append(standing),
                )
        assert all(name_of(house.me) in str(ended.value) for house in old)
        assert "giaann token issue --data-dir FOLDER --standing NAME" in str(ended.value)
        assert seen[-1].lacking is Lacking.KEEPERS
        for house in old:
            house.come_back()
        (again,) = await visitor.trainer.train(SHORT, TrainOptions(check=0))
        assert again.complete
        await shop.end()
        await visitor.close()

    play(story)


def test_epochs_are_jobs_of_their_own() -> None:
    async def story(town: Town) -> None:
        visitor = await founded(town)
        shop = Workshop(town, 101, seconds=0.1)
        text = written(130)
        reports = await visitor.trainer.train(text, TrainOptions(epochs=2))
        assert [(report.epoch, report.chunks) for report in reports] == [(1, 3), (2, 3)]
        reports = await visitor.trainer.train(text, TrainOptions(epochs=3))
        assert [(one.chunks_known, one.chunks) for one in reports] == [(3, 0), (3, 0), (0, 3)]
        await town.until(holds(town, text, 3))
        await shop.end()
        await visitor.close()

    play(story)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_compute_and_storage_peers_may_die_join_and_leave_meanwhile(seed: int) -> None:
    async def story(town: Town) -> None:
        visitor = await founded(town, 4)
        shops = [Workshop(town, number, seconds=8.0) for number in (101, 102, 103)]
        running = asyncio.create_task(visitor.trainer.train(TEXT, TrainOptions(batch=8)))
        await asyncio.sleep(6)
        await shops[0].die()
        await town.houses[0].die()
        shops.append(Workshop(town, 104, seconds=8.0))
        await asyncio.sleep(3)
        shops[1].node.leave()
        town.houses[0].come_back()
        (report,) = await running
        assert report.complete
        assert (report.chunks, report.sentences) == (10, 640)
        assert report.unbrought == {}
        await shops[1].gone()
        assert shops[1].error is None
        await town.until(holds(town, TEXT))
        for shop in shops[2:]:
            await shop.end()
        await visitor.close()

    play(story, seed=seed)


def test_chunks_grow_but_a_text_goes_on_in_chunks_as_it_began() -> None:
    async def story(town: Town) -> None:
        visitor = await founded(town)
        shop = Workshop(town, 101)
        seen: list[int] = []

        def watch(report: TrainReport, standing: TrainProgress) -> None:
            seen.append(standing.committed)

        (begun,) = await visitor.trainer.train(
            TEXT, watch=watch, should_stop=lambda: bool(seen) and seen[-1] >= 4
        )
        assert begun.interrupted
        edition = Editions(MANIFEST).next(FOUNDER, chunk=256).to_bytes()
        town.alive[0].node.gate.learn_edition(edition)
        visitor.visit.gate.learn_edition(edition)
        await town.until(lambda: all(one.node.gate.editions.number for one in town.alive))
        (rest,) = await visitor.trainer.train(TEXT)
        assert rest.complete
        assert rest.chunks_known >= 4
        assert rest.chunks_known + rest.chunks == 10
        (known,) = await visitor.trainer.train(TEXT)
        assert (known.known, known.job) == (True, rest.job)
        other = written(600, seed=1)
        (large,) = await visitor.trainer.train(other)
        assert (large.complete, large.chunks, large.sentences) == (True, 3, 600)
        await town.until(holds(town, TEXT + "\n" + other))
        await shop.end()
        await visitor.close()

    play(story)


@pytest.mark.parametrize("sizes", [[CHUNK], [CHUNK, 256]], ids=["one size", "two sizes"])
def test_a_text_goes_on_as_it_began_though_a_single_owner_has_the_first_of_it(
    sizes: list[int],
) -> None:
    async def story(town: Town) -> None:
        visitor = await founded(town)
        shop = Workshop(town, 101)
        text = written(130)
        with opened(text) as corpus:
            job, *more = (job_id(corpus, 1, SPEC, size) for size in sizes)
        first, others = town.alive[0], town.alive[1:]
        for one in (job, *more):
            first.store.apply([lesson(0, first.store.limits)._replace(job=one)])
        first.node._holdings.look()
        edition = Editions(MANIFEST).next(FOUNDER, chunk=256).to_bytes()
        for one in (first.node.gate, *(other.node.gate for other in others), visitor.visit.gate):
            one.learn_edition(edition)
        (report,) = await visitor.trainer.train(text)
        assert (report.job, report.chunks + report.chunks_known) == (job, 3)
        await shop.end()
        await visitor.close()

    play(story)


def test_no_single_owner_can_have_a_text_learned_again_in_smaller_chunks() -> None:
    async def story(town: Town) -> None:
        visitor = await founded(town)
        shop = Workshop(town, 101)
        with opened(TEXT) as corpus:
            earlier = job_id(corpus, 1, SPEC, CHUNK)
        edition = Editions(MANIFEST).next(FOUNDER, chunk=256).to_bytes()
        for gate in (visitor.visit.gate, *(one.node.gate for one in town.alive)):
            gate.learn_edition(edition)
        (report,) = await visitor.trainer.train(TEXT)
        assert report.complete
        tried, liar = len(shop.slow.learned), town.alive[0]
        liar.store.apply([lesson(0, liar.store.limits)._replace(job=earlier)])
        liar.node._holdings.look()
        (again,) = await visitor.trainer.train(TEXT)
        assert (again.known, again.job) == (True, report.job)
        assert len(shop.slow.learned) == tried
        await shop.end()
        await visitor.close()

    play(story)


def test_somebody_else_goes_on_where_it_was_stopped() -> None:
    async def story(town: Town) -> None:
        visitor = await founded(town)
        shop = Workshop(town, 101)
        seen: list[TrainProgress] = []

        def watch(report: TrainReport, standing: TrainProgress) -> None:
            seen.append(standing)

        def stop() -> bool:
            return bool(seen) and seen[-1].committed >= 4

        (report,) = await visitor.trainer.train(
            TEXT, TrainOptions(epochs=5), watch=watch, should_stop=stop
        )
        assert report.interrupted
        assert not report.complete
        assert 4 <= report.chunks < 10
        shares = [standing.share for standing in seen]
        assert shares == sorted(shares)
        assert {standing.peers for standing in seen} <= {0, 1}
        await visitor.close()
        other = Visitor(town, 221)
        (rest,) = await other.trainer.train(TEXT)
        assert rest.complete
        assert rest.chunks_known >= report.chunks
        assert rest.chunks_known + rest.chunks == 10
        await town.until(holds(town, TEXT))
        await shop.end()
        await other.close()

    play(story)


def test_two_may_have_the_same_text_learned_at_a_time() -> None:
    async def story(town: Town) -> None:
        visitors = [await founded(town), Visitor(town, 221)]
        shops = [Workshop(town, number) for number in (101, 102)]
        found = await asyncio.gather(*[visitor.trainer.train(TEXT) for visitor in visitors])
        assert all(report.complete for (report,) in found)
        await town.until(holds(town, TEXT))
        first = asyncio.create_task(visitors[0].trainer.train(written(70)))
        await asyncio.sleep(0)
        with pytest.raises(UsageError, match="is already being learned"):
            await visitors[0].trainer.train(written(70))
        await first
        for shop in shops:
            await shop.end()
        for visitor in visitors:
            await visitor.close()

    play(story)


def test_without_compute_peers_it_waits_and_then_says_what_to_do() -> None:
    async def story(town: Town) -> None:
        visitor = await founded(town)
        seen: set[Lacking | None] = set()
        began = asyncio.get_running_loop().time()
        with pytest.raises(LackingPeers, match=r"start one.*giaann compute.*waited 20 s"):
            await visitor.trainer.train(
                TEXT,
                TrainOptions(patience=20),
                watch=lambda _, standing: seen.add(standing.lacking),
            )
        assert 20 < asyncio.get_running_loop().time() - began < 30
        assert seen == {None, Lacking.COMPUTE}
        running = asyncio.create_task(visitor.trainer.train(TEXT))
        await asyncio.sleep(10)
        shop = Workshop(town, 101)  # just in time
        (report,) = await running
        assert report.complete
        await shop.end()
        await visitor.close()

    play(story)


def test_without_enough_storage_peers_it_says_so() -> None:
    async def story(town: Town) -> None:
        visitor = await founded(town)
        for house in town.houses:
            town.freeze(house)
        with pytest.raises(LackingPeers, match="too few storage peers answer"):
            await visitor.trainer.train(TEXT, TrainOptions(patience=20))
        for house in town.houses:
            town.freeze(house, frozen=False)
        await visitor.close()

    play(story)


@pytest.mark.parametrize("held", [1, 96])
def test_what_nobody_can_learn_is_given_up_and_told_of_and_all_else_is_learned(
    tmp_path: Path, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "_AHEAD", held - 1)
    lines = TEXT.splitlines()
    lines[200] = f"The {FATAL} of 7 makes honey from the flower in a year."
    file = tmp_path / "bees.txt"
    file.write_text("\n".join(lines))

    async def story(town: Town) -> None:
        visitor = await founded(town)
        shops = [Workshop(town, number, seconds=0.2) for number in (101, 102, 103)]
        (report,) = await visitor.trainer.train(file, TrainOptions(batch=1))
        assert not report.complete
        assert not report.interrupted
        assert report.chunks == 9
        assert set(report.given_up) == {3}
        assert report.given_up[3].line == 3 * 64 + 1
        assert set(report.given_up[3].reasons) == {"the process that parsed it died of signal 9"}
        for shop in shops:
            assert shop.node.counters.failed
            assert shop.error is None
            await shop.end()
        await visitor.close()

    play(story)


def test_a_connection_that_breaks_is_opened_again_by_who_can_dial() -> None:
    async def story(town: Town) -> None:
        visitor = await founded(town)
        shop = Workshop(town, 101, seconds=4.0)
        town.network.way(shop.me, visitor.me).dials = False  # as behind a router
        running = asyncio.create_task(visitor.trainer.train(TEXT))
        for _ in range(3):
            await asyncio.sleep(5)
            town.network.reset(shop.me, visitor.me)
        (report,) = await running
        assert report.complete
        assert len(shop.slow.learned) == 10  # none of them twice
        await shop.end()
        await visitor.close()

    play(story)


def test_what_strangers_ask_or_tell_is_refused() -> None:
    async def story(town: Town) -> None:
        visitor, other = await founded(town), Visitor(town, 221)
        lie = [Learned(5, 64, [Skip("no reason", 3, 2), Skip("too long", 64, 63)], 7)]
        for question in (AskManifest(), Beat(JOB, [], lie, [])):
            data = await other.transport.call(visitor.me, encode(question), timeout=5)
            assert isinstance(decode(data), Refusal)
        await other.close()
        await visitor.close()

    play(story)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"epochs": 0}, "epochs must be 1 or more; it is 0"),
        ({"policy": "best"}, "policy must be overlap or random; it is 'best'"),
        ({"batch": 0}, "batch must be 1 to 4,096; it is 0"),
        ({"batch": MOST_BATCH + 1}, "batch must be 1 to 4,096; it is 4,097"),
        ({"patience": -1}, "patience must be 0 or more; it is -1"),
    ],
)
def test_a_manner_that_cannot_be_is_told(wrong: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        TrainOptions(**wrong)  # type: ignore[arg-type]
