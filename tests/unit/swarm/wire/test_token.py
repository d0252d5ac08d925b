"""Members' tokens: given, shown, and what nobody can make of them."""

from collections.abc import Callable

import msgspec
import pytest

from giaann_p2p.errors import TokenError
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.token import EVERY, MOST_BYTES, Grant, Rights, Token, founded

FOUNDER, DELEGATE, MEMBER, SESSION, OTHER = (
    Identity.from_seed(bytes([number]) * 32) for number in range(1, 6)
)
SWARM = b"s" * 32
UNTIL = 2_000_000_000
ASKING, STORING = Rights.CLIENT, Rights.STORAGE


def direct(rights: Rights = STORING, until: int = UNTIL) -> Token:
    return founded(FOUNDER, SWARM, MEMBER.peer, rights, until)


def chain() -> Token:
    token = founded(FOUNDER, SWARM, DELEGATE.peer, Rights.DELEGATE | STORING | ASKING, UNTIL)
    token = token.given(DELEGATE, MEMBER.peer, STORING | ASKING, UNTIL - 1)
    return token.given(MEMBER, SESSION.peer, ASKING, UNTIL - 2)


def test_a_token_of_the_founder_is_what_it_says() -> None:
    found = direct(STORING | ASKING).standing(FOUNDER.peer)
    assert (found.member, found.rights, found.until) == (MEMBER.peer, STORING | ASKING, UNTIL)
    assert found.chain == (MEMBER.peer,)


def test_a_chain_gives_what_its_last_grant_says() -> None:
    found = chain().standing(FOUNDER.peer)
    assert (found.member, found.rights, found.until) == (SESSION.peer, ASKING, UNTIL - 2)
    assert found.chain == (DELEGATE.peer, MEMBER.peer, SESSION.peer)


@pytest.mark.parametrize("make", [direct, chain])
def test_a_token_comes_back_from_its_bytes_and_from_its_text(make: Callable[[], Token]) -> None:
    token = make()
    assert Token.read(token.to_bytes()) == token
    text = str(token)
    assert Token.from_text(text) == token
    assert Token.from_text(f"  {text[:40]}\n{text[40:]}\n") == token
    assert len(token.to_bytes()) <= MOST_BYTES


@pytest.mark.parametrize("place", range(len(chain().to_bytes())))
def test_a_token_with_any_byte_changed_is_none(place: int) -> None:
    data = bytearray(chain().to_bytes())
    data[place] ^= 1
    with pytest.raises(TokenError):
        Token.read(bytes(data)).standing(FOUNDER.peer)


@pytest.mark.parametrize(
    ("rights", "until", "words"),
    [
        (EVERY, UNTIL, "no right to grant"),  # the delegate cannot compute
        (Rights.COMPUTE, UNTIL, "no right to grant"),
        (STORING, UNTIL + 1, "more time than it has itself"),
    ],
)
def test_nobody_gives_more_than_it_has(rights: Rights, until: int, words: str) -> None:
    token = founded(FOUNDER, SWARM, DELEGATE.peer, Rights.DELEGATE | STORING, UNTIL)
    with pytest.raises(TokenError, match=words):
        token.given(DELEGATE, MEMBER.peer, rights, until).standing(FOUNDER.peer)


@pytest.mark.parametrize("rights", [STORING, STORING | ASKING, Rights.DELEGATE])
def test_who_is_no_delegate_lets_others_ask_and_nothing_else(rights: Rights) -> None:
    token = direct(STORING | ASKING)
    with pytest.raises(TokenError, match="no right to grant"):
        token.given(MEMBER, OTHER.peer, rights, UNTIL).standing(FOUNDER.peer)
    assert token.given(MEMBER, OTHER.peer, ASKING, UNTIL).standing(FOUNDER.peer).rights == ASKING
    with pytest.raises(TokenError, match="no right to grant"):  # who may not ask itself
        direct(STORING).given(MEMBER, OTHER.peer, ASKING, UNTIL).standing(FOUNDER.peer)


def test_another_founder_and_another_giver_do_not_pass() -> None:
    with pytest.raises(TokenError, match="did not sign"):
        chain().standing(OTHER.peer)
    with pytest.raises(TokenError, match="this token is"):
        direct().given(OTHER, OTHER.peer, STORING, UNTIL)
    grants = founded(OTHER, SWARM, OTHER.peer, STORING, UNTIL).grants
    with pytest.raises(TokenError, match="did not sign"):
        Token(SWARM, grants).standing(FOUNDER.peer)
    with pytest.raises(TokenError, match="did not sign"):  # a grant moved to another swarm
        Token(b"t" * 32, direct().grants).standing(FOUNDER.peer)


def test_a_chain_ends() -> None:
    token = chain().given(SESSION, OTHER.peer, ASKING, UNTIL - 2)
    with pytest.raises(TokenError, match="at most 4 grants"):
        token.given(OTHER, MEMBER.peer, ASKING, UNTIL - 2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "begins with"),
        ("giaann://abc", "begins with"),
        ("giaann-token:", "letters, digits"),
        ("giaann-token:ab/c", "letters, digits"),
        ("giaann-token:abcde", "copy it whole"),
        ("giaann-token:" + "a" * 4000, "at most 1,024 bytes"),
        (str(direct())[:-8], "not a token"),
    ],
)
def test_what_is_no_token_is_told(text: str, words: str) -> None:
    with pytest.raises(TokenError, match=words):
        Token.from_text(text)


@pytest.mark.parametrize(
    "grant",
    [
        Grant(MEMBER.peer, 0, UNTIL, bytes(64)),
        Grant(MEMBER.peer, 32, UNTIL, bytes(64)),
        Grant(MEMBER.peer, 1, -1, bytes(64)),
        Grant(MEMBER.peer, 1, 1 << 60, bytes(64)),
        Grant(MEMBER.peer, 1, UNTIL, bytes(65)),
    ],
)
def test_grants_out_of_bounds_are_no_token(grant: Grant) -> None:
    with pytest.raises(TokenError, match="not a token"):
        Token.read(Token(SWARM, (grant,)).to_bytes())
    with pytest.raises(TokenError, match="not a token"):
        Token.read(Token(SWARM, ()).to_bytes())


def test_another_encoding_of_the_same_is_refused() -> None:
    member, rights, until, signature = msgspec.structs.astuple(direct().grants[0])
    longer = b"\x92" + msgspec.msgpack.encode(SWARM) + b"\x91\x94"
    longer += b"".join(map(msgspec.msgpack.encode, (member, rights)))
    longer += b"\xd3" + until.to_bytes(8, "big") + msgspec.msgpack.encode(signature)
    with pytest.raises(TokenError, match="canonical encoding"):
        Token.read(longer)


def test_rights_have_names() -> None:
    assert Rights.named("storage, client") == STORING | ASKING
    assert str(STORING | ASKING) == "storage, client"
    with pytest.raises(TokenError, match=r"'king'; .* are storage, compute, client, delegate"):
        Rights.named("storage,king")
