"""Editions: how the founder changes a swarm's rules while the swarm runs.

The manifest never changes, but some of its numbers may grow: the replicas of a shard, the
sentences of a chunk, the shards, and the parts of columns that are cut by target. An edition states
their present values. Edition 0 stands for the manifest itself.

1. The founder signs each edition and numbers it. The newest edition that a peer knows counts, and
   is complete, so a peer needs no earlier one. Any peer may pass an edition on.
2. Numbers only grow: an edition with fewer replicas than the manifest, or than the edition that a
   peer knows, is refused. So the owners by an earlier edition remain owners by a later one (see
   `placement`), peers on different editions can work together, and nothing has to be undone. An
   edition also lists all earlier chunk sizes, because a text is recognised by the chunks in which
   it was learned.
3. If any two quorums of the manifest meet, the quorum grows with the replicas. Otherwise two owners
   could commit a chunk while a reader believes two others that lack it, and two liars among more
   owners could vouch for content that no honest owner has. If the founder chose quorums that need
   not meet, the quorum stays as it is.
4. Updates may have been committed under any earlier edition, by as few owners as the manifest
   requires. So after a restart of all owners, enough of them must be present that at least one has
   each such update.
5. The number of shards only doubles, once or several times. Then each shard is divided into its two
   children on the peers that have it, without a byte on the wire (see `shardset.recounted`).
6. Columns are cut into more parts only together with a new size of chunks, and chunks of an earlier
   size are cut as before. So the size of a chunk determines how its delta is cut, and a peer that
   learns a chunk again, or continues a text, gets the same delta (see `cut_columns`).
7. An edition of a later format is refused, not half understood. The peer goes on with the edition
   that it knows, until it runs a release that reads the new one.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated

import msgspec

from giaann_p2p.errors import EditionError, SpecError
from giaann_p2p.model.spec import CHUNK, MOST_CHUNK
from giaann_p2p.store.cut_columns import cut_columns
from giaann_p2p.store.cuts import Cut, checked, together
from giaann_p2p.store.layout import MOST_SHARDS
from giaann_p2p.swarm.wire.identity import SIGNATURE_BYTES, Identity, verified
from giaann_p2p.swarm.wire.manifest import (
    MOST_REPLICAS,
    Manifest,
    Rules,
    usual_quorum,
)
from giaann_p2p.swarm.wire.shardset import is_doubled

FORMAT = 3
"""Newest version of the encoding. Version 2 lacks cut columns, and version 1 lacks the number of
shards as well. An edition has the oldest version that can state its rules, so that older releases
can read it."""
_NO_SHARDS, _NO_CUTS = 1, 2
MOST_SIZES = 8
"""Maximum number of chunk sizes besides the manifest's: enough to double it up to the largest
size."""
MOST_BYTES = 1 << 16
"""Maximum length of an encoded edition, in bytes. Without cut columns, it is below 300."""
MOST_NUMBER = 1 << 32
_KIND = "edition"
_OTHER_RELEASE = "install the release of giaann-p2p that the founder uses"

_SwarmId = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
_Signature = Annotated[bytes, msgspec.Meta(max_length=SIGNATURE_BYTES)]


class Edition(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One edition of a swarm's rules, signed by the founder."""

    format: Annotated[int, msgspec.Meta(ge=1, le=1 << 16)]
    swarm_id: _SwarmId
    number: Annotated[int, msgspec.Meta(ge=1, lt=MOST_NUMBER)]
    replicas: Annotated[int, msgspec.Meta(ge=1, le=MOST_REPLICAS)]
    """Number of peers that own each shard."""
    sizes: Annotated[
        tuple[Annotated[int, msgspec.Meta(gt=CHUNK, le=MOST_CHUNK)], ...],
        msgspec.Meta(max_length=MOST_SIZES),
    ] = ()
    """Chunk sizes that replaced the manifest's, in sentences, ascending; the last one is in
    force."""
    signature: _Signature = b""
    shards: Annotated[int, msgspec.Meta(ge=0, le=MOST_SHARDS)] = 0
    """The number of shards; 0 for the manifest's. It is left out of the encoding in format 1."""
    cuts: Annotated[tuple[tuple[Cut, ...], ...], msgspec.Meta(max_length=MOST_SIZES)] = ()
    """For each of the `sizes`, the columns that are cut anew, or into more parts than before. Left
    out of the encoding unless the format is 3; empty lists at the end are left out, too."""

    @classmethod
    def read(cls, data: bytes, manifest: Manifest) -> "Edition":
        """Decode and verify an edition; EditionError says what is wrong."""
        if len(data) > MOST_BYTES:
            raise EditionError(f"an edition has at most {MOST_BYTES} bytes, not {len(data):,}")
        found = _decoded(data)
        if found.swarm_id != manifest.swarm_id:
            raise EditionError("this edition is another swarm's")
        if found.to_bytes() != data:
            raise EditionError("the edition is not in its canonical encoding")
        if not verified(manifest.founder, _KIND, found.unsigned(), found.signature):
            raise EditionError("the founder did not sign this edition")
        if found.replicas < manifest.replicas:
            raise EditionError(
                f"edition {found.number} has {found.replicas} replicas, fewer than the "
                f"{manifest.replicas} of the manifest"
            )
        sizes = manifest.layout.chunk, *found.sizes
        if any(later <= size for size, later in pairwise(sizes)):
            raise EditionError(f"the chunk sizes of edition {found.number} do not ascend")
        if not is_doubled(found.shards or manifest.layout.shards, manifest.layout.shards):
            raise EditionError(
                f"edition {found.number} has {found.shards} shards, which is not a doubling "
                f"of the {manifest.layout.shards} of the manifest"
            )
        _check_cuts(found, manifest.layout.cuts or ())
        return found

    @classmethod
    def signed(
        cls,
        founder: Identity,
        swarm_id: bytes,
        number: int,
        replicas: int,
        sizes: tuple[int, ...] = (),
        shards: int = 0,
        cuts: tuple[tuple[Cut, ...], ...] = (),
    ) -> "Edition":
        """Return a signed edition; 0 `shards` stand for the number in the manifest."""
        while cuts and not cuts[-1]:
            cuts = cuts[:-1]
        form = FORMAT if cuts else _NO_CUTS if shards else _NO_SHARDS
        draft = cls(form, swarm_id, number, replicas, sizes, shards=shards, cuts=cuts)
        return msgspec.structs.replace(draft, signature=founder.sign(_KIND, draft.to_bytes()))

    def unsigned(self) -> bytes:
        """Return the bytes that the founder signs: the encoding with an empty signature."""
        return msgspec.structs.replace(self, signature=b"").to_bytes()

    def to_bytes(self) -> bytes:
        """Return the canonical encoding of this edition."""
        fields = msgspec.structs.astuple(self)
        return msgspec.msgpack.encode(fields[: len(fields) - FORMAT + self.format])


class Editions:
    """The newest edition that one peer knows, and the rules that follow from it.

    Invariant: the edition's number, replicas and shards never decrease, and its list of chunk sizes
    only grows.
    """

    def __init__(self, manifest: Manifest) -> None:
        self.newest: Edition | None = None
        self.rules = rules_of(manifest, None)
        """The rules in force."""
        self._manifest = manifest

    def __repr__(self) -> str:
        rules = self.rules
        return f"<Editions: {self.number}, {rules.replicas} replicas, {rules.shards} shards>"

    @property
    def number(self) -> int:
        """The number of the newest edition; 0 for the manifest."""
        return self.rules.edition

    def is_news(self, data: bytes) -> bool:
        """Return whether this edition is newer than the newest; EditionError if it is invalid."""
        found = Edition.read(data, self._manifest)
        if found.number == self.number and found != self.newest:
            raise EditionError(f"the founder signed another edition {found.number} before this one")
        if found.number <= self.number:
            return False
        if found.replicas < self.rules.replicas:
            raise EditionError(
                f"edition {found.number} has {found.replicas} replicas, fewer than the "
                f"{self.rules.replicas} of edition {self.number}"
            )
        if (found.shards or self.rules.first_shards) < self.rules.shards:
            raise EditionError(
                f"edition {found.number} has fewer shards than the {self.rules.shards} of edition "
                f"{self.number}"
            )
        known = self.newest.sizes if self.newest else ()
        if found.sizes[: len(known)] != known:
            raise EditionError(f"edition {found.number} lacks chunk sizes of edition {self.number}")
        if self.newest and _cuts_of(found, len(known)) != _cuts_of(self.newest, len(known)):
            raise EditionError(
                f"edition {found.number} cuts chunks of an earlier size in another way than edition"
                f" {self.number}"
            )
        return True

    def learn(self, data: bytes) -> bool:
        """Adopt an edition if it is newer than the newest; return whether it was.

        EditionError if it is invalid, or reduces the replicas or shards.
        """
        if not self.is_news(data):
            return False
        self.newest = Edition.read(data, self._manifest)
        self.rules = rules_of(self._manifest, self.newest)
        return True

    def divides(self, data: bytes) -> bool:
        """Return whether a valid edition has more shards than there are now."""
        return self.shards_of(data) > self.rules.shards

    def number_of(self, data: bytes) -> int:
        """Return the number of a valid edition."""
        return Edition.read(data, self._manifest).number

    def shards_of(self, data: bytes) -> int:
        """Return the number of shards of a valid edition."""
        return rules_of(self._manifest, Edition.read(data, self._manifest)).shards

    def to_bytes(self) -> bytes:
        """Return the newest edition's encoding; empty for edition 0."""
        return self.newest.to_bytes() if self.newest is not None else b""

    def next(
        self,
        founder: Identity,
        replicas: int = 0,
        chunk: int = 0,
        shards: int = 0,
        cuts: Sequence[Cut] = (),
    ) -> Edition:
        """Return the next edition, with more replicas, larger chunks, more shards or cut columns.

        Pass 0 for each number that stays as it is. `cuts` are the columns that are cut into more
        parts than now. EditionError if a number does not grow, or exceeds its maximum.
        """
        known = self.newest.shards if self.newest else 0
        if shards:
            known, now = shards, self.rules.shards
            if not (is_doubled(known, 2 * now) and known <= MOST_SHARDS):
                raise EditionError(
                    f"the number of shards can only be doubled, up to {MOST_SHARDS:,}: "
                    f"it is {now:,}, and cannot become {known:,}"
                )
        replicas = self._grown(
            "the number of replicas", self.rules.replicas, replicas, MOST_REPLICAS
        )
        sizes = self.newest.sizes if self.newest else ()
        if chunk:
            sizes += (self._grown("a chunk", self.rules.chunk, chunk, MOST_CHUNK),)
        if len(sizes) > MOST_SIZES:
            raise EditionError(f"chunks cannot grow more often than {MOST_SIZES} times")
        if cuts and not chunk:
            raise EditionError(
                "columns are cut only in chunks of a new size: enlarge the chunks, too"
            )
        lists: list[tuple[Cut, ...]] = [()] * len(sizes)
        if self.newest:
            lists = _cuts_of(self.newest, len(sizes))
        if cuts:
            lists[-1] = _new_cuts(cuts, self.rules.cuts[-1].cuts)
        swarm_id = self._manifest.swarm_id
        edition = Edition.signed(
            founder, swarm_id, self.number + 1, replicas, sizes, known, tuple(lists)
        )
        return Edition.read(edition.to_bytes(), self._manifest)

    def _grown(self, what: str, now: int, then: int, most: int) -> int:
        if then and not now < then <= most:
            raise EditionError(f"{what} can only grow: give {now + 1} to {most}, not {then}")
        return then or now


def rules_of(manifest: Manifest, edition: Edition | None) -> Rules:
    """Return the rules of a swarm by an edition; None for edition 0."""
    replicas = edition.replicas if edition else manifest.replicas
    quorum = manifest.quorum
    if quorum >= usual_quorum(manifest.replicas):
        quorum = max(quorum, usual_quorum(replicas))
    first, shards = manifest.layout.shards, edition.shards if edition else 0
    return Rules(
        shards or first,
        replicas,
        quorum,
        manifest.replicas,
        manifest.quorum,
        edition.number if edition else 0,
        (manifest.layout.chunk, *(edition.sizes if edition else ())),
        first if shards > first else 0,
        manifest.layout.blocks,
        tuple(map(cut_columns, _all_cuts(edition, manifest.layout.cuts or ()))),
    )


def _cuts_of(edition: Edition, sizes: int) -> list[tuple[Cut, ...]]:
    """Return the cuts for each of an edition's first `sizes` chunk sizes; () where it has none."""
    return [*edition.cuts[:sizes], *[()] * (sizes - len(edition.cuts))]


def _all_cuts(edition: Edition | None, first: tuple[Cut, ...]) -> tuple[tuple[Cut, ...], ...]:
    """Return the cut columns for each chunk size; `first` are the manifest's."""
    lists = [first]
    for cuts in _cuts_of(edition, len(edition.sizes)) if edition else ():
        lists.append(together([lists[-1], cuts]) if cuts else lists[-1])
    return tuple(lists)


def _check_cuts(edition: Edition, first: tuple[Cut, ...]) -> None:
    """Raise EditionError unless each list of cuts only has columns with more parts than before."""
    if len(edition.cuts) > len(edition.sizes):
        raise EditionError(f"edition {edition.number} cuts columns for no size of chunks")
    try:
        for at, before in enumerate(_all_cuts(edition, first)[: len(edition.cuts)]):
            checked(together([before, checked(edition.cuts[at])]))
            _new_cuts(edition.cuts[at], before)
    except SpecError as error:
        raise EditionError(f"edition {edition.number}: {error}") from None


def _new_cuts(cuts: Sequence[Cut], before: Sequence[Cut]) -> tuple[Cut, ...]:
    """Return cuts in order; EditionError if one has no more parts than before."""
    parts = {cut.word: cut.parts for cut in before}
    for cut in cuts:
        if cut.parts <= parts.get(cut.word, 1):
            raise EditionError(
                f"the column {cut.word!r} has {parts.get(cut.word, 1):,} parts already; it can only"
                f" be cut into more, not into {cut.parts:,}"
            )
    return tuple(sorted(cuts))


def number_in(edition: bytes) -> int:
    """Return the number of an encoded edition without verifying it; 0 if it cannot be read."""
    try:
        return _decoded(edition).number
    except EditionError:
        return 0


class _Format(msgspec.Struct, array_like=True):
    format: int


def _decoded(data: bytes) -> Edition:
    try:
        number = msgspec.msgpack.decode(data, type=_Format).format
        if not 1 <= number <= FORMAT:
            raise EditionError(
                f"the edition has format {number}, but this giaann-p2p reads 1 to {FORMAT}; "
                f"{_OTHER_RELEASE}"
            )
        found = msgspec.msgpack.decode(data, type=Edition)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise EditionError(f"this is not an edition: {error}") from None
    least = FORMAT if found.cuts else _NO_CUTS if found.shards else _NO_SHARDS
    if found.format != least:
        raise EditionError(
            f"this is not an edition: format {found.format}, where {least} states the same rules"
        )
    return found
