"""Reads join links as users give them: in full, or by the name under which a link was saved.

Links without a usable address are rejected here, before a command loads anything slow or dials a
peer. Saved links are in the file `giaann/links.json` in the user's configuration folder.
"""

import re
from difflib import get_close_matches
from pathlib import Path

import msgspec

from giaann_p2p.errors import DamagedError, UsageError
from giaann_p2p.net.hive.peer_id import peer_of_address
from giaann_p2p.plain_faults import fault_of
from giaann_p2p.store.disk.small_file import read_whole, write_whole
from giaann_p2p.swarm.wire.link import Link
from giaann_p2p.user_folder import user_folder

_SCHEME = "giaann://"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_SWARM_LENGTH = 52
"""Length of a swarm's id in a link, in letters."""
_PEER_LENGTH, _PEER_HEAD = 52, "12D3KooW"
"""Length of a libp2p peer id in letters, and the letters with which every such id begins."""
_SHOWN = 12
"""Number of letters from the end of a cut link that an error message quotes."""
_MOST_BYTES = 1 << 20
"""Maximum size of the file of saved links, in bytes."""


class SavedLinks:
    """The user's saved links, by name."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file or _usual_file()

    def __repr__(self) -> str:
        return f"<SavedLinks in {self._file}>"

    def all(self) -> dict[str, str]:
        """Return the links by name; DamagedError if the file cannot be read."""
        data = read_whole(self._file, _MOST_BYTES)
        if data is None:
            return {}
        try:
            return msgspec.json.decode(data, type=dict[str, str])
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise DamagedError(
                f"{self._file} is damaged ({fault_of(error)}): repair or remove it"
            ) from None

    def save(self, name: str, link: Link) -> None:
        """Save a link under a name; it replaces a link saved under that name before."""
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} is not a valid name: use at most 64 letters a to z, digits, . _ and -,"
                " and begin with a letter or a digit"
            )
        self._write(self.all() | {name: str(link)})

    def forget(self, name: str) -> None:
        """Delete a saved link; UsageError if there is none of that name."""
        links = self.all()
        if name not in links:
            raise UsageError(f"no link is saved as {name!r}{_nearest(name, links)}")
        del links[name]
        self._write(links)

    def _write(self, links: dict[str, str]) -> None:
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{self._file.parent} cannot be created: {error.strerror}") from None
        write_whole(self._file, msgspec.json.format(msgspec.json.encode(links), indent=2) + b"\n")


def read_link(text: str) -> Link:
    """Read a link, or a saved link's name; UsageError says what is wrong with the text."""
    text = text.strip()
    if _NAME.fullmatch(text):
        links = SavedLinks().all()
        if text not in links:
            raise UsageError(
                f"{text!r} is neither a join link ({_SCHEME}...) nor the name of a saved one"
                f"{_nearest(text, links)}; `giaann join LINK --as {text}` saves a link"
            )
        text = links[text]
    try:
        link = Link.read(text)
        _check_leads_somewhere(link)
    except UsageError:
        if _is_cut(text):
            raise UsageError(
                f"the join link is cut off after {text[-_SHOWN:]!r}: copy all of it, to the end of"
                " the line"
            ) from None
        raise
    return link


def full_link(text: str) -> str:
    """Return a link in full, given in full or by the name under which it was saved."""
    return str(read_link(text))


def saved_names() -> list[str]:
    """Return the names of all saved links."""
    return sorted(SavedLinks().all())


def _check_leads_somewhere(link: Link) -> None:
    """Raise UsageError if none of a link's addresses names a peer, or the last one is cut off."""
    faults = []
    for address in link.addresses:
        try:
            peer_of_address(address)
        except UsageError as error:
            faults.append(str(error))
    if len(faults) == len(link.addresses):
        raise UsageError(f"the join link has no usable address: {'; '.join(faults)}")
    if faults and _is_cut(str(link)):
        raise UsageError(faults[-1])


def _is_cut(text: str) -> bool:
    """Return whether a text looks like a link that ends within its swarm id or last address."""
    if not text.lower().startswith(_SCHEME):
        return False
    swarm, slash, addresses = text[len(_SCHEME) :].partition("/")
    if not slash:
        return len(swarm) <= _SWARM_LENGTH
    last = addresses.rpartition(",")[2]
    _, part, peer = f"/{last}".rpartition("/p2p/")
    is_begun = peer[: len(_PEER_HEAD)] == _PEER_HEAD[: len(peer)]
    return not part or (is_begun and len(peer) < _PEER_LENGTH)


def _nearest(name: str, links: dict[str, str]) -> str:
    """Return a suggestion of a similar saved name for an error message; empty if there is none."""
    found = get_close_matches(name, links, n=1)
    return f"; did you mean {found[0]}?" if found else ""


def _usual_file() -> Path:
    return user_folder("XDG_CONFIG_HOME") / "links.json"
