"""A daemon's options: one class defines the command line, the TOML file and the manual.

A field's description is its help text. The TOML file uses the fields' names. The command line
overrides the file, and the file overrides the defaults.
"""

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, get_args, get_origin

import msgspec

from giaann_p2p.errors import UsageError
from giaann_p2p.net.hive.daemon_limits import WatchLimits
from giaann_p2p.units import nbytes


def told(
    text: str, form: str = "", *, ge: int | None = None, le: int | None = None
) -> msgspec.Meta:
    """Return an option's metadata: help text, metavariable and bounds."""
    return msgspec.Meta(description=text, extra={"form": form}, ge=ge, le=le)


_LEAST_P2PD = 80_000_000
"""Smallest memory limit of p2pd that is accepted, in bytes."""
_MOST_PORT = (1 << 16) - 1


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options that daemons of every role have."""

    summary: ClassVar[str]
    """What the daemon does, in one sentence: the help of its command."""
    data_dir: Annotated[
        str,
        told(
            "Folder for this peer's identity, known peers and stored data; one daemon per folder. "
            "If none is given: ~/.local/share/giaann/<swarm>/<role>.",
            "FOLDER",
        ),
    ] = ""
    listen: Annotated[
        tuple[str, ...],
        told(
            "Address to listen on, for example /ip4/0.0.0.0/tcp/4100, or with /udp/4100/quic-v1 "
            "for QUIC; port 0 picks a free one and keeps it. May be given several times.",
            "ADDRESS",
        ),
    ] = ("/ip4/0.0.0.0/tcp/0",)
    announce: Annotated[
        tuple[str, ...],
        told(
            "Address to announce if it is not the one listened on, for example behind a "
            "router that forwards a port. May be given several times.",
            "ADDRESS",
        ),
    ] = ()
    member_token: Annotated[
        str,
        told(
            "Token for this peer, or a file with it, needed in a swarm for members only; "
            "its founder issues it (giaann token issue). It is kept in the folder.",
            "TOKEN",
        ),
    ] = ""
    relay: Annotated[
        bool,
        told(
            "Be reachable through other peers if none of this peer's addresses can be "
            "dialled. Slower; forward a port instead if you can."
        ),
    ] = False
    p2pd_memory: Annotated[
        str,
        told(
            "Memory limit of p2pd, the process that carries the connections. Above it strangers "
            "are disconnected; if that does not help, or above three times the limit, p2pd is "
            "restarted. A peer that is connected to more than 500 others may need more.",
            "SIZE",
        ),
    ] = "150MB"
    metrics_port: Annotated[
        int,
        told(
            "Port on 127.0.0.1 for /metrics (Prometheus), /healthz and /readyz; "
            "0 picks a free one, -1 serves none.",
            "PORT",
            ge=-1,
            le=_MOST_PORT,
        ),
    ] = -1
    log: Annotated[
        Literal["text", "json"],
        told("Log format: lines for people, or JSON for programs."),
    ] = "text"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        told("Lowest severity to log."),
    ] = "info"
    status_file: Annotated[
        str, told("File to keep this peer's state in, for a supervisor.", "FILE")
    ] = ""

    def check(self) -> None:
        """Raise UsageError if this machine or folder cannot serve with these options."""

    def knowing(self, given: Collection[str]) -> Self:
        """Return the options, with the names of those that were given if the role needs them."""
        return self

    @property
    def watch(self) -> WatchLimits:
        """Resource limits of the p2pd process; UsageError if its memory limit is too small."""
        limits = WatchLimits(memory=nbytes(self.p2pd_memory))
        if limits.memory < _LEAST_P2PD:
            raise UsageError(f"--p2pd-memory must be at least 80MB; it is {self.p2pd_memory}")
        return limits


Kind = TypeVar("Kind", bound=Options)
_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
_PATH = re.compile(r"`\$\.(\w+)(?:\[\.*\d*\])?`")


def options(kind: type[Kind], given: Mapping[str, Any], file: Path | None = None) -> Kind:
    """Return a daemon's options: from the given values, else from the file, else the defaults."""
    values = {**_of_file(file, kind), **given} if file else dict(given)
    for name, text in described(kind).items():
        if name not in values and _field(kind, name).required:
            raise UsageError(f"{flag(name)} is missing. {text.description}")
    try:
        return msgspec.convert(values, kind).knowing(values)
    except msgspec.ValidationError as error:
        where, found = f"{file}: " if file else "", _PATH.search(str(error))
        if found is None:
            raise UsageError(f"{where}{error}") from None
        wanted = _wanted(_field(kind, found[1]), described(kind)[found[1]])
        given_value = f"it is {values[found[1]]!r}"
        raise UsageError(f"{where}{flag(found[1])} must be {wanted}; {given_value}") from None


def described(kind: type[Options]) -> dict[str, msgspec.Meta]:
    """Return the metadata of each of a daemon's options, by the option's name.

    Fields without metadata are left out, because they are no options.
    """
    return {
        field.name: one
        for field in msgspec.structs.fields(kind)
        for one in getattr(field.type, "__metadata__", ())
        if isinstance(one, msgspec.Meta)  # the last one, if there are several
    }


def flag(name: str) -> str:
    """Return an option's flag on the command line."""
    return "--" + name.replace("_", "-")


def _wanted(field: msgspec.structs.FieldInfo, meta: msgspec.Meta) -> str:
    """Return a phrase that says which values an option accepts."""
    kind = get_args(field.type)[0]
    if get_origin(kind) is Literal:
        return " or ".join(map(repr, get_args(kind)))
    if get_origin(kind) is tuple:
        return "a list of texts"
    words = _KINDS[kind]
    if meta.ge is not None and meta.le is not None:
        return f"{words} from {meta.ge} to {meta.le}"
    return words if meta.ge is None else f"{words}, {meta.ge} or more"


def _field(kind: type[Options], name: str) -> msgspec.structs.FieldInfo:
    return next(field for field in msgspec.structs.fields(kind) if field.name == name)


def _of_file(file: Path, kind: type[Options]) -> dict[str, Any]:
    try:
        found = msgspec.toml.decode(file.read_bytes())
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise UsageError(f"{file} is not TOML: {error}") from None
    if strange := set(found) - set(described(kind)):
        raise UsageError(
            f"{file}: no option is named {min(strange)!r}; choose from {', '.join(described(kind))}"
        )
    return dict(found)
