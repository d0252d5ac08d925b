"""A member's token: the rights that a founder grants in a swarm that admits by token.

A token is a chain of grants. The founder signs the first one; the member of each grant signs the
next:

    founder ──► delegate ──► member ──► one of the member's sessions

1. A grant must not exceed its giver's own rights, nor outlast them.
2. Only a delegate may give grants, with one exception: a client may admit other clients, because it
   could ask on their behalf anyway. So each of a client's processes can have a key of its own.
3. The member's key and the swarm are both in the signed bytes. A token is not secret: it is useful
   only to a peer whose key the transport has proved to be the member's.
4. A token is short, has one canonical encoding, and at most `MOST_GRANTS` grants.
"""

import base64
import re
from enum import IntFlag
from functools import reduce
from typing import Annotated

import msgspec

from giaann_p2p.errors import TokenError
from giaann_p2p.swarm.wire.identity import (
    SIGNATURE_BYTES,
    Identity,
    Peer,
    PeerField,
    name_of,
    verified,
)

MOST_GRANTS = 4
"""Maximum number of grants in a token."""
MOST_BYTES = 1 << 10
"""Maximum length of an encoded token, in bytes."""
_KIND = "grant"
_SCHEME = "giaann-token:"
_LETTERS = re.compile(r"[A-Za-z0-9_-]+")
_SECONDS = 8


class Rights(IntFlag):
    """The rights that a token may grant to a member (see `admission.MAY_ASK`)."""

    STORAGE = 1
    COMPUTE = 2
    CLIENT = 4
    DELEGATE = 8
    """The right to admit others, with no more rights than the delegate itself has."""
    STANDING = 16
    """The right to standing at once, because the giver knows the machine; also in open swarms."""

    @classmethod
    def named(cls, names: str) -> "Rights":
        """Parse the names of rights, separated by commas; TokenError lists the possible names."""
        try:
            return reduce(cls.__or__, [cls[name.strip().upper()] for name in names.split(",")])
        except KeyError as error:
            possible = ", ".join(right.name.lower() for right in cls if right.name)
            raise TokenError(
                f"there is no right {error.args[0].lower()!r}; the rights are {possible}"
            ) from None

    def __str__(self) -> str:
        return ", ".join(right.name.lower() for right in Rights if right in self and right.name)


EVERY = Rights(sum(Rights))
NONE = Rights(0)

_SwarmId = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
_Signature = Annotated[bytes, msgspec.Meta(max_length=SIGNATURE_BYTES)]


class Grant(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One grant of a token: gives `member` some rights until a certain time."""

    member: PeerField
    rights: Annotated[int, msgspec.Meta(ge=1, le=int(EVERY))]
    until: Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]
    """Expiry time, in seconds since 1970."""
    signature: _Signature = b""


class ProvenRights(msgspec.Struct, frozen=True):
    """The rights that a verified token proves."""

    member: Peer
    rights: Rights
    until: int
    """Expiry time, in seconds since 1970."""
    chain: tuple[Peer, ...]
    """All members in the token's chain of grants, its own included; the token is void if the
    founder revokes one of them."""


class Token(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A chain of grants, from the founder of a swarm to one member."""

    swarm_id: _SwarmId
    grants: Annotated[tuple[Grant, ...], msgspec.Meta(min_length=1, max_length=MOST_GRANTS)]

    def __str__(self) -> str:
        return _SCHEME + base64.urlsafe_b64encode(self.to_bytes()).decode().rstrip("=")

    @classmethod
    def read(cls, data: bytes) -> "Token":
        """Decode a token; TokenError says what is malformed. Signatures are not checked."""
        if len(data) > MOST_BYTES:
            raise TokenError(f"a token has at most {MOST_BYTES:,} bytes, not {len(data):,}")
        try:
            found = msgspec.msgpack.decode(data, type=cls)
        except (msgspec.MsgspecError, RecursionError):
            raise TokenError(
                "this is not a token, or part of it is wrong or missing: copy it whole"
            ) from None
        if found.to_bytes() != data:
            raise TokenError("the token is not in its canonical encoding")
        return found

    @classmethod
    def from_text(cls, text: str) -> "Token":
        """Parse a token from its text; TokenError says what is wrong."""
        text = "".join(text.split())  # mail programs break lines
        if not text.startswith(_SCHEME):
            raise TokenError(f"a token begins with {_SCHEME!r}, not with {text[:13]!r}")
        letters = text.removeprefix(_SCHEME)
        if not _LETTERS.fullmatch(letters):
            raise TokenError("a token has only letters, digits, - and _: copy it whole")
        try:
            return cls.read(base64.urlsafe_b64decode(letters + "=" * (-len(letters) % 4)))
        except ValueError:
            raise TokenError("part of the token is missing: copy it whole") from None

    @property
    def member(self) -> Peer:
        """The peer that the token is for."""
        return self.grants[-1].member

    def to_bytes(self) -> bytes:
        """Return the canonical encoding of this token."""
        return msgspec.msgpack.encode(self)

    def standing(self, founder: Peer) -> ProvenRights:
        """Verify the token's chain of grants, and return the rights that it proves.

        TokenError if a grant is invalid. The expiry time is not checked.
        """
        giver, has, ends = founder, EVERY, self.grants[0].until
        for grant in self.grants:
            rights = Rights(grant.rights)
            if not _may_give(has, rights):
                raise TokenError(
                    f"{name_of(giver)} has no right to grant {name_of(grant.member)} {rights}"
                )
            if grant.until > ends:
                raise TokenError(f"{name_of(giver)} granted more time than it has itself")
            if not verified(giver, _KIND, _signed(self.swarm_id, grant), grant.signature):
                raise TokenError(f"{name_of(giver)} did not sign this token")
            giver, has, ends = grant.member, rights, grant.until
        return ProvenRights(giver, has, ends, tuple(grant.member for grant in self.grants))

    def given(self, giver: Identity, member: Peer, rights: Rights, until: int) -> "Token":
        """Return this token extended by one grant, from its member (the giver) to another peer."""
        if giver.peer != self.member:
            raise TokenError(f"this token is {name_of(self.member)}'s, not {name_of(giver.peer)}'s")
        if len(self.grants) == MOST_GRANTS:
            raise TokenError(
                f"a token has at most {MOST_GRANTS} grants: get one from an earlier member of the"
                " chain"
            )
        return Token(
            self.swarm_id, (*self.grants, _grant(giver, self.swarm_id, member, rights, until))
        )


def founded(founder: Identity, swarm_id: bytes, member: Peer, rights: Rights, until: int) -> Token:
    """Return a token with a single grant, from the founder to a member."""
    return Token(swarm_id, (_grant(founder, swarm_id, member, rights, until),))


def _grant(giver: Identity, swarm_id: bytes, member: Peer, rights: Rights, until: int) -> Grant:
    draft = Grant(member, int(rights), until)
    return msgspec.structs.replace(draft, signature=giver.sign(_KIND, _signed(swarm_id, draft)))


def _signed(swarm_id: bytes, grant: Grant) -> bytes:
    return b"".join(
        [swarm_id, grant.member, bytes([grant.rights]), grant.until.to_bytes(_SECONDS, "little")]
    )


def _may_give(has: Rights, gives: Rights) -> bool:
    if Rights.DELEGATE in has:
        return gives in has
    return gives == Rights.CLIENT and Rights.CLIENT in has
