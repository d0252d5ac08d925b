"""A member's token: what its founder lets somebody be in a swarm that not everybody may join.

A token is a chain of grants. The founder gives the first one, the member of each gives the next:

    founder ──► delegate ──► member ──► one of the member's sessions

1. No grant counts for more than its giver has: neither for a right, nor for a second longer.
2. Only a delegate gives grants; but who may ask may let others ask for it, for it could ask on
   their behalf anyway: so each of a client's processes has a key of its own.
3. A grant names its member's key and its swarm, and both are signed. Whoever shows a token is that
   member only if the transport has proved it so: a token is no secret, and of no use to others.
4. A token is short, has one encoding, and no more grants than `MOST_GRANTS`.
"""

import base64
import re
from enum import IntFlag
from functools import reduce
from typing import Annotated

import msgspec

from giaann_p2p.errors import TokenError
from giaann_p2p.swarm.identity import (
    SIGNATURE_BYTES,
    Identity,
    Peer,
    PeerField,
    name_of,
    verified,
)

MOST_GRANTS = 4
MOST_BYTES = 1 << 10
_KIND = "grant"
_SCHEME = "giaann-token:"
_LETTERS = re.compile(r"[A-Za-z0-9_-]+")
_SECONDS = 8


class Rights(IntFlag):
    """What somebody may be; see `admission` for what each may ask of others."""

    STORAGE = 1
    COMPUTE = 2
    CLIENT = 4
    DELEGATE = 8
    """Lets others in, with no more rights than it has itself."""

    @classmethod
    def named(cls, names: str) -> "Rights":
        """Read names with commas between them; TokenError says which are possible."""
        try:
            return reduce(cls.__or__, [cls[name.strip().upper()] for name in names.split(",")])
        except KeyError as error:
            possible = ", ".join(right.name.lower() for right in cls if right.name)
            raise TokenError(f"there is no right {error.args[0].lower()!r}: {possible}") from None

    def __str__(self) -> str:
        return ", ".join(right.name.lower() for right in Rights if right in self and right.name)


EVERY = Rights.STORAGE | Rights.COMPUTE | Rights.CLIENT | Rights.DELEGATE
NONE = Rights(0)

_SwarmId = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
_Signature = Annotated[bytes, msgspec.Meta(max_length=SIGNATURE_BYTES)]


class Grant(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One link of the chain."""

    member: PeerField
    rights: Annotated[int, msgspec.Meta(ge=1, le=int(EVERY))]
    until: Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]
    """In seconds since 1970."""
    signature: _Signature = b""


class Standing(msgspec.Struct, frozen=True):
    """What a token comes to."""

    member: Peer
    rights: Rights
    until: int
    chain: tuple[Peer, ...]
    """Who has to be a member still: all but the founder, this one included."""


class Token(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """See the module."""

    swarm_id: _SwarmId
    grants: Annotated[tuple[Grant, ...], msgspec.Meta(min_length=1, max_length=MOST_GRANTS)]

    def __str__(self) -> str:
        return _SCHEME + base64.urlsafe_b64encode(self.to_bytes()).decode().rstrip("=")

    @classmethod
    def read(cls, data: bytes) -> "Token":
        """Read a token; TokenError says what is wrong with its form. No signature is checked."""
        if len(data) > MOST_BYTES:
            raise TokenError(f"a token has at most {MOST_BYTES:,} bytes, not {len(data):,}")
        try:
            found = msgspec.msgpack.decode(data, type=cls)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise TokenError(f"this is no token: {error}") from None
        if found.to_bytes() != data:
            raise TokenError("the token is not in the one encoding that it may have")
        return found

    @classmethod
    def from_text(cls, text: str) -> "Token":
        """Read a token as it is printed; TokenError says what is wrong."""
        text = "".join(text.split())  # mails break lines
        if not text.startswith(_SCHEME):
            raise TokenError(f"a token begins with {_SCHEME!r}, not with {text[:13]!r}")
        letters = text.removeprefix(_SCHEME)
        if not _LETTERS.fullmatch(letters):
            raise TokenError("a token is of letters, digits, - and _: copy it whole")
        try:
            return cls.read(base64.urlsafe_b64decode(letters + "=" * (-len(letters) % 4)))
        except ValueError:
            raise TokenError("part of the token is missing: copy it whole") from None

    @property
    def member(self) -> Peer:
        """Whose it is."""
        return self.grants[-1].member

    def to_bytes(self) -> bytes:
        """Return the one encoding of this token."""
        return msgspec.msgpack.encode(self)

    def standing(self, founder: Peer) -> Standing:
        """Return what it comes to in its founder's swarm; TokenError if somebody made it up."""
        giver, has, ends = founder, EVERY, self.grants[0].until
        for grant in self.grants:
            rights = Rights(grant.rights)
            if not _may_give(has, rights):
                raise TokenError(
                    f"{name_of(giver)} has no right to let {name_of(grant.member)} be: {rights}"
                )
            if grant.until > ends:
                raise TokenError(f"{name_of(giver)} gave more time than it has itself")
            if not verified(giver, _KIND, _signed(self.swarm_id, grant), grant.signature):
                raise TokenError(f"{name_of(giver)} did not sign this token")
            giver, has, ends = grant.member, rights, grant.until
        return Standing(giver, has, ends, tuple(grant.member for grant in self.grants))

    def given(self, giver: Identity, member: Peer, rights: Rights, until: int) -> "Token":
        """Return the token with one grant more, of its member to another."""
        if giver.peer != self.member:
            raise TokenError(f"this token is {name_of(self.member)}'s, not {name_of(giver.peer)}'s")
        if len(self.grants) == MOST_GRANTS:
            raise TokenError(f"a token has at most {MOST_GRANTS} grants: have one given earlier")
        return Token(
            self.swarm_id, (*self.grants, _grant(giver, self.swarm_id, member, rights, until))
        )


def founded(founder: Identity, swarm_id: bytes, member: Peer, rights: Rights, until: int) -> Token:
    """Return a token that the founder itself gives."""
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
