"""Taking a swarm's model home: from peers some of which lie, are silent, or go on learning."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest

from giaann_p2p.cli.present import info_lines
from giaann_p2p.client import pulling
from giaann_p2p.client.pulling import Pulled, pull
from giaann_p2p.client.session import Session
from giaann_p2p.errors import PeerError, SpecError, UsageError
from giaann_p2p.model.digest import readable
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.sim.lessons import SPEC, lessons_of
from giaann_p2p.solo.brain import Brain
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.store import Store
from giaann_p2p.store.transfer import Export
from giaann_p2p.store.update import Update
from giaann_p2p.swarm.wire.edition import rules_of
from giaann_p2p.swarm.wire.identity import Identity, Peer
from giaann_p2p.swarm.wire.manifest import Manifest, Rules
from giaann_p2p.swarm.wire.member_messages import EditionIs
from giaann_p2p.swarm.wire.messages import (
    AskDigests,
    AskPart,
    Digest,
    Digests,
    Offer,
    Offered,
    Part,
    Refusal,
    decode,
    doublings_of,
    encode,
)
from giaann_p2p.swarm.wire.shardset import packed, unpacked

LAYOUT = Layout(shards=4)
JOB = b"j" * 16
FOUNDER = Identity.from_seed(b"f" * 32)
DOUBLED = Rules(2 * LAYOUT.shards, founding_shards=LAYOUT.shards)
NEWER = b"an edition with twice as many shards"
MANIFEST = Manifest.founded(FOUNDER, "hive", spec=SPEC, layout=LAYOUT, replicas=3)


def learned(*chunks: int) -> Store:
    """Return a store that has learned some chunks."""
    store, lessons = Store.in_memory(SPEC, LAYOUT), lessons_of(LAYOUT)
    store.hold(range(LAYOUT.shards))
    for chunk in chunks:
        store.apply([Update(JOB, chunk, store.shards, lessons.delta(chunk))])
    return store


class Owner:
    """A storage peer that has all shards."""

    def __init__(self, store: Store) -> None:
        self.store, self.asked = store, list[object]()

    def answer(self, question: object) -> object:
        self.asked.append(question)
        if isinstance(question, AskDigests):
            count = self.store.layout.shards
            shards = unpacked(question.shards, count)
            return Digests(packed(shards, count), list(map(self.digest, shards.tolist())))
        if isinstance(question, Offer):
            return Offered(self.export(question.shard).manifest.to_bytes(), b"", b"")
        assert isinstance(question, AskPart)
        return Part(self.export(question.shard).part(question.number))

    def export(self, shard: int) -> Export:
        return Export(self.store.content(shard))

    def digest(self, shard: int) -> Digest:
        held = self.store.content(shard)
        content = held.digest.to_bytes(32, "little")
        (applied,) = held.applied
        return Digest(b"r", applied.digest, content, 1, held.delta.connections)


class Breaker(Owner):
    """Reports what the others do, and sends something else."""

    def answer(self, question: object) -> object:
        found = super().answer(question)
        return Part(b"x" * len(found.parcel)) if isinstance(found, Part) else found


class Refuser(Owner):
    """Reports what the others do, and then refuses."""

    def answer(self, question: object) -> object:
        return super().answer(question) if isinstance(question, AskDigests) else Refusal("busy")


class Silent(Owner):
    """Never answers."""

    def answer(self, question: object) -> object:
        raise Unreachable("it is silent")


class Everywhere(NamedTuple):
    """A placement in which the same peers own every shard."""

    peers: Sequence[Peer]

    def owners(self, _shard: int) -> Sequence[Peer]:
        return self.peers[: MANIFEST.replicas]


def visiting(*peers: Owner, manifest: Manifest = MANIFEST) -> Session:
    """Return a session with a swarm of storage peers; the first three own every shard."""
    known = {Peer(bytes([number]) * 32): owner for number, owner in enumerate(peers, 1)}

    async def call(peer: Peer, body: bytes, **_: float) -> bytes:
        if doublings_of(body) != known[peer].store.layout.doublings:
            session.refused.append(peer)
            return encode(EditionIs(NEWER))
        return encode(cast(Any, known[peer].answer(decode(body))))

    async def join_dht() -> None:
        pass

    session = SimpleNamespace(
        manifest=manifest,
        join_dht=join_dht,
        now=0.0,
        around=SimpleNamespace(
            placement=lambda _now: Everywhere(list(known)), rules=rules_of(manifest, None)
        ),
        place=SimpleNamespace(transport=SimpleNamespace(call=call)),
        refused=[],
    )

    def heard(answer: object) -> None:
        if answer == EditionIs(NEWER):
            session.around.rules = DOUBLED

    session.gate = SimpleNamespace(hear=heard)
    return cast(Session, session)


def doubled(session: Session, *owners: Owner) -> Session:
    """Double the swarm's number of shards."""
    for owner in owners:
        owner.store.double(2 * LAYOUT.shards)
    session.around.rules = DOUBLED  # type: ignore[misc]
    return session


def pulled(folder: Path, *owners: Owner) -> Pulled:
    return asyncio.run(pull(visiting(*owners), folder))


def test_a_brain_has_as_many_shards_as_the_swarm_by_its_newest_edition(tmp_path: Path) -> None:
    owners = [Owner(learned(1, 2)) for _ in range(3)]
    before = pulled(tmp_path / "former", *owners)
    session = doubled(visiting(*owners), *owners)
    first = asyncio.run(pull(session, tmp_path / "new"))
    assert (first.shards, first.digest) == (8, before.digest)
    assert first.downloaded > before.shards  # some have no rows
    again = asyncio.run(pull(session, tmp_path / "former"))
    assert (again.shards, again.downloaded, again.digest) == (8, 0, before.digest)
    for folder in ("former", "new"):
        with Store.at(tmp_path / folder, readonly=True) as store:
            assert store.layout == LAYOUT.doubled(1)
            assert store.shards.tolist() == [*range(8)]


def test_a_brain_is_not_pulled_by_an_edition_before_its_own(tmp_path: Path) -> None:
    owners = [Owner(learned(1)) for _ in range(3)]
    asyncio.run(pull(doubled(visiting(*owners), *owners), tmp_path))
    with pytest.raises(UsageError, match=r"has 8 shards, .* still have 4: try again"):
        pulled(tmp_path, *[Owner(learned(1)) for _ in range(3)])


@pytest.mark.parametrize("kind", [AskDigests, Offer, AskPart])
def test_a_pull_goes_on_when_the_shards_double_meanwhile(tmp_path: Path, kind: type) -> None:
    owners = [Owner(learned(1, 2)) for _ in range(3)]
    session, shown = visiting(*owners), list[tuple[int, int]]()
    answer = owners[0].answer

    def doubles(question: object) -> object:
        if isinstance(question, kind) and owners[0].store.layout == LAYOUT:
            for owner in owners:
                owner.store.double(2 * LAYOUT.shards)
            return EditionIs(NEWER)  # by it, the session hears of the doubling
        return answer(question)

    for owner in owners:
        owner.answer = doubles  # type: ignore[method-assign]
    found = asyncio.run(pull(session, tmp_path, lambda here, every: shown.append((here, every))))
    assert (found.shards, found.digest) == (8, whole())
    assert shown[-1] == (8, 8)
    # Each peer is asked in vain at most once for each shard, and digests are not waited for.
    assert len(cast(Any, session).refused) <= len(owners) * LAYOUT.shards


def whole(chunks: Sequence[int] = (1, 2)) -> str:
    return readable(learned(*chunks).digest())


def test_a_model_comes_home_and_then_only_what_has_changed(tmp_path: Path) -> None:
    first = pulled(tmp_path, *[Owner(learned(1, 2)) for _ in range(3)])
    assert (first.digest, first.downloaded) == (whole(), 4)
    assert pulled(tmp_path, *[Owner(learned(1, 2)) for _ in range(3)]).downloaded == 0
    more = pulled(tmp_path, *[Owner(learned(1, 2, 3)) for _ in range(3)])
    assert more.digest == whole((1, 2, 3))
    with Brain.open(tmp_path, readonly=True) as brain:
        assert brain.info().digest == more.digest
        assert [job.name for job in brain.info().texts] == [f"hive, job {JOB.hex()[:8]}"]
        assert f"hive, job {JOB.hex()[:8]} (3 chunks)\n" in info_lines(brain.info(), "") + "\n"


def test_what_a_swarm_has_learned_a_brain_knows(tmp_path: Path) -> None:
    pulled(tmp_path, *[Owner(learned(1, 2)) for _ in range(3)])
    store = Store.at(tmp_path)
    store.apply([Update(JOB, 2, store.shards, lessons_of(LAYOUT).delta(2))])
    assert readable(store.digest()) == whole()
    store.close()


@pytest.mark.parametrize("bad", [Breaker, Refuser])
def test_a_shard_comes_from_whoever_sends_what_most_report(
    tmp_path: Path, bad: type[Owner]
) -> None:
    owners = [bad(learned(1, 2)), bad(learned(1, 2)), Owner(learned(1, 2))]
    assert pulled(tmp_path, *owners).digest == whole()


def test_a_liar_among_the_owners_is_outvoted(tmp_path: Path) -> None:
    liar = Owner(learned(1, 3))
    assert pulled(tmp_path, liar, *[Owner(learned(1, 2)) for _ in range(2)]).digest == whole()
    assert not any(isinstance(question, Offer) for question in liar.asked)


def test_a_silent_owner_is_not_waited_for(tmp_path: Path) -> None:
    owners = [Silent(learned()), Owner(learned(1, 2)), Owner(learned(1, 2))]
    assert pulled(tmp_path, *owners).digest == whole()


def test_strangers_that_claim_to_serve_have_no_vote(tmp_path: Path) -> None:
    honest = [Owner(learned(1, 2)) for _ in range(3)]
    strangers = [Owner(learned(1, 3)) for _ in range(5)]
    assert pulled(tmp_path, *honest, *strangers).digest == whole()
    assert not any(isinstance(asked, Offer) for stranger in strangers for asked in stranger.asked)


def test_one_owner_is_not_believed_while_the_others_are_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulling, "_PAUSE", 0.0)
    with pytest.raises(PeerError, match="4 of 4 shards have no content on which most"):
        pulled(tmp_path, Owner(learned(1, 3)), Silent(learned()), Silent(learned()))


def test_the_only_owner_of_a_small_swarm_is_enough(tmp_path: Path) -> None:
    assert pulled(tmp_path, Owner(learned(1, 2))).digest == whole()


def test_nobody_sends_what_was_reported(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match=r"no peer sent shard . .*busy.*try again"):
        pulled(tmp_path, *[Refuser(learned(1)) for _ in range(3)])
    assert pulled(tmp_path, *[Owner(learned(1)) for _ in range(3)]).digest == whole((1,))


def test_owners_that_do_not_agree_are_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulling, "_PAUSE", 0.0)
    owners = [Owner(learned(number)) for number in range(1, 4)]
    with pytest.raises(PeerError, match="4 of 4 shards have no content"):
        pulled(tmp_path, *owners)
    assert len(owners[0].asked) == pulling._AGAIN


def test_a_swarm_that_learns_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulling, "_PAUSE", 0.0)

    def half() -> Store:
        store = learned(1)
        store.apply([Update(JOB, 2, store.shards[:2], lessons_of(LAYOUT).delta(2))])
        return store

    with pytest.raises(PeerError, match="the swarm is learning"):
        pulled(tmp_path, *[Owner(half()) for _ in range(3)])


def test_a_brain_with_other_knowledge_is_told_apart(tmp_path: Path) -> None:
    pulled(tmp_path, *[Owner(learned(1)) for _ in range(3)])
    store = Store.at(tmp_path)
    store.apply([Update(b"k" * 16, 0, store.shards, lessons_of(LAYOUT).delta(9))])
    store.close()
    with pytest.raises(UsageError, match="pull into an empty folder"):
        pulled(tmp_path, *[Owner(learned(1)) for _ in range(3)])


def test_a_brain_of_another_model_is_not_touched(tmp_path: Path) -> None:
    Brain.open(tmp_path).close()
    with pytest.raises((SpecError, UsageError)):
        pulled(tmp_path, *[Owner(learned(1)) for _ in range(3)])
