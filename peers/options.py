"""What can be set of a daemon: one class says it for the command line, the file and the manual.

A field's description is its help text. A file is TOML with the fields' names; the command line goes
before the file, the file before the default.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from giaann_p2p.errors import UsageError


def told(
    text: str, form: str = "", *, ge: int | None = None, le: int | None = None
) -> msgspec.Meta:
    """Say what an option is for, in which form it is to be given, and within which bounds."""
    return msgspec.Meta(description=text, extra={"form": form}, ge=ge, le=le)


_MOST_PORT = (1 << 16) - 1


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every daemon can be told."""

    data_dir: Annotated[
        str,
        told(
            "Folder of this peer's identity, of the peers it knows, and of what it "
            "stores. One daemon a folder. If none is given: ~/.local/share/giaann/<swarm>/<role>.",
            "FOLDER",
        ),
    ] = ""
    listen: Annotated[
        tuple[str, ...],
        told(
            "Address to listen at, as /ip4/0.0.0.0/tcp/4100, or with /udp/4100/quic-v1 "
            "for QUIC; port 0 takes a free one, and keeps it. May be given several times.",
            "ADDRESS",
        ),
    ] = ("/ip4/0.0.0.0/tcp/0",)
    announce: Annotated[
        tuple[str, ...],
        told(
            "Address to tell others, where it is not the one listened at: behind a "
            "router that forwards a port, for instance. May be given several times.",
            "ADDRESS",
        ),
    ] = ()
    member_token: Annotated[
        str,
        told(
            "Token for this peer, or a file with it, in a swarm that only its members may join: "
            "its founder gives it (giaann token issue). It is kept in the folder.",
            "TOKEN",
        ),
    ] = ""
    relay: Annotated[
        bool,
        told(
            "Be reachable through other peers where no address of this one can be "
            "dialled. Slower; forward a port instead where you can."
        ),
    ] = False
    metrics_port: Annotated[
        int,
        told(
            "Port on this machine for /metrics (Prometheus), /healthz and /readyz; "
            "0 takes a free one, -1 none.",
            "PORT",
            ge=-1,
            le=_MOST_PORT,
        ),
    ] = -1
    log: Annotated[
        Literal["text", "json"],
        told("How to log: lines for people, or JSON for programs."),
    ] = "text"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        told("How grave something must be to be logged."),
    ] = "info"
    status_file: Annotated[
        str, told("File to keep this peer's state in, for whoever supervises it.", "FILE")
    ] = ""


Kind = TypeVar("Kind", bound=Options)
_PATH = re.compile(r"`\$\.(\w+)(?:\[\.*\d*\])?`")


def options(kind: type[Kind], given: Mapping[str, Any], file: Path | None = None) -> Kind:
    """Return a daemon's options: those given, then those of the file, then the defaults."""
    values = {**_of_file(file, kind), **given} if file else dict(given)
    for name, text in described(kind).items():
        if name not in values and _field(kind, name).required:
            raise UsageError(f"{flag(name)} is missing. {text.description}")
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        where = f"{file}: " if file else ""
        raise UsageError(where + _PATH.sub(lambda found: flag(found[1]), str(error))) from None


def described(kind: type[Options]) -> dict[str, msgspec.Meta]:
    """Return what is told of each option."""
    return {
        field.name: next(
            one for one in reversed(field.type.__metadata__) if isinstance(one, msgspec.Meta)
        )
        for field in msgspec.structs.fields(kind)
    }


def flag(name: str) -> str:
    """Return an option as it is given on the command line."""
    return "--" + name.replace("_", "-")


def _field(kind: type[Options], name: str) -> msgspec.structs.FieldInfo:
    return next(field for field in msgspec.structs.fields(kind) if field.name == name)


def _of_file(file: Path, kind: type[Options]) -> dict[str, Any]:
    try:
        found = msgspec.toml.decode(file.read_bytes())
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise UsageError(f"{file} is no TOML: {error}") from None
    if strange := set(found) - set(described(kind)):
        raise UsageError(
            f"{file}: there is no option {min(strange)!r}; there are {', '.join(described(kind))}"
        )
    return dict(found)
