"""Storage peers to be connected by hand, with real stores and a view of peers that tests set."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from giaann_p2p.errors import GiaannError
from giaann_p2p.model.manner import Beam, Manner
from giaann_p2p.model.rows import Name
from giaann_p2p.model.said import Token
from giaann_p2p.model.subwords.basis import Basis
from giaann_p2p.model.subwords.said import SubwordToken
from giaann_p2p.model.tier import Tier
from giaann_p2p.sim.lessons import SPEC, Lessons
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update, anything
from giaann_p2p.swarm.members.claims import Mask
from giaann_p2p.swarm.members.exclusion import Named, placed_by
from giaann_p2p.swarm.members.placement import Placement
from giaann_p2p.swarm.replication.answers import Answers
from giaann_p2p.swarm.replication.delta_checks import DeltaChecks
from giaann_p2p.swarm.replication.replicas import Replicas
from giaann_p2p.swarm.replication.settings import Settings
from giaann_p2p.swarm.replication.shard_fingerprint import weighed
from giaann_p2p.swarm.replication.shared import Shared
from giaann_p2p.swarm.replication.storage import StoragePeer
from giaann_p2p.swarm.wire.actions import (
    Action,
    Adopt,
    Apply,
    Call,
    Drop,
    Hold,
    Release,
    TakeFingerprints,
)
from giaann_p2p.swarm.wire.admission import Admission
from giaann_p2p.swarm.wire.identity import Identity, Peer
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.member_messages import (
    AskEdition,
    AskManifest,
    AskPulses,
    AskRecords,
    AskRelease,
    AskRevoked,
    EditionIs,
    ManifestIs,
    RecordsAre,
    ReleaseIs,
    RevokedIs,
)
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import (
    AskDigests,
    AskNouns,
    AskOrphans,
    AskPart,
    AskProof,
    Carried,
    Carry,
    Compare,
    Compared,
    Digest,
    Digests,
    Fetch,
    FetchCarried,
    Fetched,
    Nouns,
    Offer,
    Offered,
    OrphansAre,
    Part,
    Piece,
    Proof,
    Push,
    Pushed,
    PushFrom,
    Refusal,
    decode,
    encode,
)
from giaann_p2p.swarm.wire.prompt_messages import Ask, Continued, ContinuedSubwords, Cost
from giaann_p2p.swarm.wire.record import Naming
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.row_messages import AskColumn, Column, Read, ReadSlice, Rows
from giaann_p2p.swarm.wire.shardset import packed
from giaann_p2p.swarm.wire.training_messages import (
    Beat,
    BeatAck,
    Learn,
    LearnAck,
    LearnCut,
    Learned,
    LearnIn,
    PushOrder,
    Result,
    Skip,
)
from giaann_p2p.swarm.wire.voucher import Sealing, Voucher, sealing, vouched
from giaann_p2p.swarm.wire.withdrawn import Chunk, Withdrawn, parts_of

SHARDS = 4
LAYOUT = Layout(shards=SHARDS)
RULES = Rules(LAYOUT.shards)
LESSONS = Lessons(LAYOUT)
JOB, OTHER_JOB = b"a job of a test.", b"and another one."
NOW = 1000.0
SETTINGS = Settings()
A, B, C, D = (Peer(letter * 32) for letter in (b"A", b"B", b"C", b"D"))
Kind = TypeVar("Kind")


class Around:
    """A view of other peers that a test sets, which records what it is told."""

    def __init__(self, *members: Peer) -> None:
        self.me = D
        self.admission: Admission | None = None
        self.capacities: dict[Peer, int] = dict.fromkeys(members, 1 << 30)
        self.ready_at: dict[int, list[Peer]] = {}
        self.syncing_at: dict[int, list[Peer]] = {}
        self.gone_with: dict[int, list[Peer]] = {}
        self.cold_at: dict[int, list[Peer]] = {}
        self.beside_owners: dict[Peer, Shards] = {}
        self.others_there: set[Peer] = set()
        self.without_disk: set[Peer] = set()
        self.named_by: Named = {}
        self.looked: float | None = NOW
        self.unreachable: set[Peer] = set()
        self.newcomers: set[Peer] = set()
        self.away: list[Peer] = []
        self.suspected: list[Peer] = []
        self.trusted: list[Peer] = []
        self.changes = 0
        self.rules = Rules(SHARDS)

    @property
    def replicas(self) -> int:
        return self.rules.replicas

    @replicas.setter
    def replicas(self, count: int) -> None:
        self.rules = self.rules._replace(replicas=count)

    def version(self, now: float) -> int:
        return self.changes

    def members(self, now: float) -> Mapping[Peer, int]:
        return self.capacities

    def named(self, now: float) -> Named:
        return self.named_by

    def placement(self, now: float) -> Placement:
        return placed_by(self.rules, self.capacities, {})

    def sharing(self, shards: Shards, now: float) -> Mapping[Peer, list[int]]:
        found: dict[Peer, list[int]] = {}
        for shard in shards.tolist():
            for peer in self._holders(shard):
                found.setdefault(peer, []).append(shard)
        return found

    def _holders(self, shard: int) -> list[Peer]:
        return [*self.ready_at.get(shard, []), *self.syncing_at.get(shard, [])]

    def ready(self, shard: int, now: float) -> Sequence[Peer]:
        return self.ready_at.get(shard, [])

    def looked_at(self) -> float | None:
        return self.looked

    def witnesses(self, shard: int, now: float) -> Sequence[Peer]:
        return [*self._holders(shard), *self.gone_with.get(shard, [])]

    def not_suspected(self, peer: Peer, now: float) -> bool:
        return peer not in self.unreachable

    def standing_now(self) -> Callable[[Peer], bool]:
        return self.may_teach

    def may_teach(self, author: Peer) -> bool:
        return author not in self.newcomers

    def beside(self, now: float) -> Mapping[Peer, Shards]:
        return self.beside_owners

    def cold(self, shard: int, now: float) -> Sequence[Peer]:
        return self.cold_at.get(shard, [])

    def stands(self, peer: Peer) -> bool:
        return peer not in self.newcomers

    def standing_members(self, now: float) -> frozenset[Peer]:
        return frozenset(filter(self.stands, self.capacities))

    def kept(self, now: float) -> Mask:
        there = {*self.capacities, *self.others_there}
        return np.full(self.rules.shards, any(map(self.keeps, there)))

    def awaited(self, now: float) -> Sequence[Peer]:
        return self.away

    def keeps(self, peer: Peer) -> bool:
        return self.stands(peer) and peer not in self.without_disk

    def suspect(self, peer: Peer, now: float) -> None:
        self.suspected.append(peer)

    def heard(self, peer: Peer) -> None:
        self.trusted.append(peer)


def accused(whom: Peer, numbers: Shards, count: int = SHARDS) -> tuple[Naming]:
    """Return a record's accusation of one peer, for some shards out of `count`."""
    return (Naming(whom, packed(numbers, count)),)


def shards(*numbers: int) -> Shards:
    """Return some shards."""
    return np.array(numbers, np.uint16)


def applied(*chunks: int, job: bytes = JOB) -> Applied:
    """Return a set of chunks of a job."""
    found = Applied()
    for chunk in chunks:
        found = found.plus(job, chunk)
    return found


def update(chunk: int, *numbers: int, job: bytes = JOB) -> Update:
    """Return a chunk's update for some shards, as if it had just arrived."""
    parcel = LESSONS.parcel(chunk, shards(*numbers))
    return Update.received(job, chunk, shards(*numbers), parcel, LIMITS)


def store(held: Iterable[int] = range(SHARDS), chunks: Iterable[int] = ()) -> Store:
    """Return a store in memory that holds shards, and has applied chunks to all of them."""
    made = Store.in_memory(SPEC, LAYOUT, retain=True)
    made.hold(held)
    made.apply([update(chunk, *made.shards.tolist()) for chunk in chunks])
    return made


LIMITS = Store.in_memory(SPEC, LAYOUT).limits


TERMS = DeltaChecks(SPEC, lambda: RULES, anything)
"""Checks that accept every update, whoever signed it."""


class Listed:
    """An open swarm whose founder has disowned some peers, and withdrawn some chunks."""

    def __init__(self, *disowned: Peer, roots: Mapping[Chunk, bytes] | None = None) -> None:
        self._disowned, self.withdrawn = {*disowned}, Withdrawn(parts_of(roots or {}))

    def authored(self, peer: Peer, token: bytes) -> str:
        return ""

    def disowned(self, peer: Peer) -> bool:
        return peer in self._disowned


AUTHORS = [Identity.from_seed(bytes([number]) * 32) for number in range(1, 5)]
SWARM_ID = bytes(range(32))


def vouch(job: bytes, chunk: int, root: bytes) -> Voucher:
    """Sign as the first author."""
    return vouched(AUTHORS[0], SWARM_ID, job, chunk, root)


def sealed(job: bytes, chunk: int) -> Sealing:
    """Return the sealing of a chunk that the first author has learned."""
    tree = LESSONS.tree(chunk)
    return sealing([vouch(job, chunk, tree.root)], tree)


def shared_by(
    replicas: Replicas,
    around: Around,
    held: Store,
    settings: Settings = SETTINGS,
    secret: bytes = b"secret",
) -> Shared:
    """Return what the parts of a storage peer's decisions share, to test one of them alone."""
    return Shared(settings, replicas, around, held, TERMS, secret, NOW)


class Side:
    """A storage peer with a store and a simple shell, which carries out its actions at once."""

    def __init__(
        self,
        me: Peer,
        around: Around,
        held: Store | None = None,
        settings: Settings = SETTINGS,
        rules: Rules | None = None,
        delta_checks: DeltaChecks = TERMS,
    ) -> None:
        self.me, self.around, self.store = me, around, held or store(())
        around.rules = rules or around.rules
        self.core = StoragePeer(
            me,
            1 << 30,
            settings,
            around,
            self.store,
            self.store.shards,
            delta_checks,
            NOW,
            bytes(me),
        )
        self.answers = Answers(self.store, self.core.replicas.state, me)
        self.calls: list[Call] = []
        self.done: list[Action] = []

    def do(self, actions: Sequence[Action], now: float) -> None:
        """Carry out actions on the store; collect the calls, and all actions."""
        for action in actions:
            self.done.append(action)
            if isinstance(action, Call):
                self.calls.append(action)
            elif isinstance(action, Hold):
                self.store.hold(action.shards.tolist())
            elif isinstance(action, Drop):
                self.store.drop(action.shards.tolist())
            elif isinstance(action, Release):
                for shards, chunks in action.parts:
                    for job in chunks:
                        self.store.release(job, chunks.of(job), shards.tolist())
            elif isinstance(action, TakeFingerprints):
                found = weighed(self.store, action.shards.tolist(), action.salt)
                self.do(self.core.weighed(action.number, found, now), now)
            elif isinstance(action, Apply | Adopt):
                self.do(self.core.stored(action.number, self._stored(action), now), now)

    def _stored(self, action: Apply | Adopt) -> GiaannError | None:
        try:
            if isinstance(action, Apply):
                self.store.apply(action.unpacked())
            else:
                self.store.adopt(action.content())
        except GiaannError as error:
            return error
        return None

    def tick(self, now: float) -> None:
        """Let the core check everything again, as its timer does."""
        self.do(self.core.tick(now), now)

    def answer(self, call: Call, answer: Message | None, now: float) -> None:
        """Give an answer to a call."""
        self.calls.remove(call)
        self.do(self.core.answered(call.number, answer, now), now)

    def told(self, kind: type[Kind]) -> list[Kind]:
        """Return all actions of a kind so far."""
        return [action for action in self.done if isinstance(action, kind)]


def sent(message: Message) -> Message:
    """Return a message as its receiver decodes it."""
    return decode(encode(message))


def talk(one: Side, other: Side, now: float) -> list[Message]:
    """Let `one` call `other` until it has no more calls; return the messages of its calls."""
    asked = []
    while mine := [call for call in one.calls if call.peer == other.me]:
        asked.append(mine[0].message)
        one.answer(mine[0], sent(other.answers.to(sent(mine[0].message))), now)
    return asked


def make_ready(replicas: Replicas) -> None:
    """Make all syncing replicas ready."""
    for shard in replicas.all(ReplicaState.SYNCING).tolist():
        replicas.caught_up(shard, NOW)


def states(replicas: Replicas) -> str:
    """Return the letter of each shard's state, in order."""
    return "".join(replicas.state(shard).value for shard in range(replicas.shards))


SHARDS_OF_ALL = packed(shards(*range(SHARDS)), SHARDS)
TOKEN = Token(" honey", "honey", Name("bee", "honey"), Tier.SEQ, 1.5, 7, 0.5)
SUBWORD = SubwordToken(" honey", " honey", Name(" bee", " honey"), Basis.RECALL, 1.5, 2, 0.75)
PART = shards(1, 2)
ROOT = LESSONS.tree(1).root
MESSAGES: list[Message] = [
    Push(JOB, 3, packed(PART, SHARDS), LESSONS.parcel(3, PART), sealed(JOB, 3)(PART)),
    PushFrom(JOB, 3, packed(PART, SHARDS), B, sealed(JOB, 3)(PART).words),
    Carry(JOB, 3, packed(PART, SHARDS), LESSONS.parcel(3, PART), sealed(JOB, 3)(PART)),
    Carried(),
    FetchCarried(JOB, 3, packed(PART, SHARDS), AUTHORS[0].peer),
    Pushed(SHARDS_OF_ALL),
    Read(b"concepts", b"features"),
    Read(b"concepts", b"features", b"its mark", bytes(16)),
    ReadSlice(bytes(8), bytes(8), 3, 5),
    Rows(LESSONS.parcel(0, shards(1)), packed(shards(2), SHARDS)),
    Rows(b"", packed(shards(2), SHARDS), b"\0\0\1\0"),
    AskColumn(bytes(8)),
    Column(bytes(16)),
    AskNouns(3, "bee"),
    AskNouns(3, frequent=16),
    Nouns(["bee", "honey"], [5, 2]),
    Compare(SHARDS_OF_ALL, [applied(chunk).digest for chunk in range(SHARDS)]),
    Compared(b"srda", [0, 1, -1, 0], [applied(1, 2).to_bytes(), applied().to_bytes()]),
    Fetch(SHARDS_OF_ALL, applied(1, 2, 1000).to_bytes()),
    Fetched([Piece(JOB, 1, SHARDS_OF_ALL, LESSONS.parcel(1, shards(0)))], applied(7).to_bytes()),
    Offer(3),
    Offered(b"a manifest", b"a set", b"a parcel"),
    AskPart(3, b"a digest", 5),
    Part(b"a parcel"),
    AskDigests(SHARDS_OF_ALL),
    Digests(packed(shards(0), SHARDS), [Digest(b"r", b"of chunks", b"of content", 5, 70)]),
    Learn(JOB, 4, ["Bees make honey.", "Wasps make none."]),
    LearnIn(JOB, 4, ["Bees make honey."], 16),
    LearnCut(JOB, 4, ["Bees make honey."], 0, 128),
    LearnAck(),
    Beat(
        JOB,
        [1, 2],
        [Learned(3, 60, [Skip("too short", 4, 7)], 999)],
        [(4, "out of memory")],
        [Result(1, ROOT, vouch(JOB, 1, ROOT))],
        [AUTHORS[0].peer],
    ),
    BeatAck([2], [PushOrder(1, [vouch(JOB, 1, ROOT)])]),
    Ask(bytes(16), "Bees make", Manner(beam=Beam(), timing="seq"), bytes(32)),
    Continued(" honey", ["zorp"], [TOKEN], "end"),
    ContinuedSubwords("", [" zorp"], [SUBWORD], None, [Cost(5)], Cost(7, rows=3)),
    AskManifest(),
    ManifestIs(b"a manifest"),
    AskRelease(),
    ReleaseIs("0.1.0", 3600),
    AskRevoked(3),
    RevokedIs(b"a list"),
    AskEdition(3),
    EditionIs(b"an edition"),
    Refusal("it cannot be done, not even in Zürich"),
    AskProof(SHARDS_OF_ALL, applied(1, 2, 1000).to_bytes(), bytes(16)),
    Proof(packed(shards(0, 2), SHARDS), [bytes(32), b""]),
    AskOrphans(3, 1),
    OrphansAre(3, 2, parts_of({(JOB, 4): bytes(16), (JOB, 9): bytes(16)})),
    AskRecords("compute", 1),
    AskPulses("compute", 1),
    RecordsAre(2, [b"a record", b"another one"]),
]
"""At least one message of each kind."""
