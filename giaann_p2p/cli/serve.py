"""`giaann serve`: a gateway to a swarm or a brain, for programs and for a browser."""

import asyncio
import ipaddress
import os
import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from giaann_p2p.cli.brain_options import directory
from giaann_p2p.client.links import read_link, saved_names
from giaann_p2p.errors import UsageError
from giaann_p2p.terminal import complain, joining, say, say_json
from giaann_p2p.units import whole_number

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from giaann_p2p.gateway.backend import Backend, Facts
    from giaann_p2p.gateway.serving import Listening
    from giaann_p2p.swarm.wire.link import Link

_MOST_PORT = (1 << 16) - 1
_STARTS_WITHIN = 60.0
"""Seconds that the swarm may take to start, for a gateway that is started with it."""
Join = Annotated[
    str | None,
    typer.Option(
        "--join",
        metavar="LINK",
        autocompletion=saved_names,
        help="Serve the swarm of this link, in full or by its saved name; else of GIAANN_JOIN.",
    ),
]
Db = Annotated[
    Path | None,
    typer.Option(
        "--db", metavar="DIR", parser=directory, help="Serve the brain in this directory."
    ),
]
Listen = Annotated[
    str,
    typer.Option(
        metavar="HOST:PORT",
        help="Where to listen; port 0 takes a free one. Other machines can only reach a gateway "
        "that listens at an address other than 127.0.0.1, which requires --api-key.",
    ),
]
ApiKey = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Answer only clients that send the key in this file; it is created if missing.",
    ),
]
Training = Annotated[bool, typer.Option("--allow-training", help="Let clients also teach texts.")]
Origins = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-origin",
        metavar="ORIGIN",
        help="Let pages of this site use the gateway: https://chat.example; may be repeated.",
    ),
]
Hosts = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host",
        metavar="NAME",
        help="Another host name of this machine; may be repeated.",
    ),
]
MostTokens = Annotated[int, typer.Option(min=1, max=65536, help="Maximum tokens of an answer.")]
Prompts = Annotated[int, typer.Option(min=1, max=4096, help="Maximum prompts answered at once.")]
AccessLog = Annotated[
    bool, typer.Option("--access-log", help="Log each request on standard error.")
]


def serve(
    join: Join = None,
    db: Db = None,
    listen: Listen = "127.0.0.1:8440",
    api_key: ApiKey = None,
    allow_training: Training = False,
    allow_origin: Origins = None,
    allow_host: Hosts = None,
    max_tokens: MostTokens = 4096,
    prompts: Prompts = 256,
    access_log: AccessLog = False,
    status_file: Annotated[str, typer.Option(hidden=True)] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the address as JSON.")] = False,
) -> None:
    """Serve a swarm or a brain over HTTP: OpenAI's interface at /v1, and a page at /.

    It prints its address once it answers, and runs until Ctrl-C or SIGTERM.
    """
    join = join or (None if db else os.environ.get("GIAANN_JOIN"))
    if (join is None) == (db is None):
        raise UsageError("serve either a swarm (--join LINK) or a brain (--db DIR)")
    link = None if join is None else read_link(join)
    listening = listening_of(listen, api_key, allow_origin or [], allow_host or [])
    _log(access_log)
    from giaann_p2p.gateway import whereabouts
    from giaann_p2p.gateway.limits import Limits

    limits = Limits(tokens=max_tokens, prompts=prompts)
    if db is not None:
        from giaann_p2p.solo.directory import existing

        file = whereabouts.of_brain(existing(db))
    elif link is not None:
        file = whereabouts.of_swarm(link.swarm_id)
    with joining(as_json) as joined:
        import uvloop

        from giaann_p2p.gateway import serving

        def tell(url: str, facts: "Facts", is_first: bool) -> None:
            joined()
            _tell(url, facts, listening, is_first, as_json)
            _report(status_file, url)

        backing = _backing(link, db, allow_training, _STARTS_WITHIN if status_file else 0.0)
        with suppress(asyncio.CancelledError):  # by a signal, before it had started
            uvloop.run(serving.serve(backing, listening, limits, file, tell))


def _backing(
    link: "Link | None", db: Path | None, training: bool, patience: float
) -> "AbstractAsyncContextManager[Backend]":
    if link is None:
        from giaann_p2p.gateway.serving import brain_backend

        folder = db or Path()
        return brain_backend(folder, folder.resolve().name or "brain", training=training)
    from giaann_p2p.cli.arrival import commands_of
    from giaann_p2p.gateway.swarm_backend import swarm_backend

    return swarm_backend(link, commands_of, training=training, patience=patience)


def listening_of(
    listen: str, key_file: Path | None, origins: list[str], hosts: list[str]
) -> "Listening":
    """Return where to listen and whom to admit; UsageError says which option is wrong."""
    from giaann_p2p.gateway.api_key import key_in
    from giaann_p2p.gateway.rules import Access, host_of, origin_of
    from giaann_p2p.gateway.serving import Listening

    host, port = _address(listen)
    loopback = _is_loopback(host)
    if not loopback and key_file is None:
        raise UsageError(
            f"other machines can reach {host}: give --api-key FILE, or, without a key, listen at"
            " 127.0.0.1"
        )
    access = Access(
        loopback=loopback,
        hosts=frozenset(map(host_of, hosts)),
        origins=frozenset(map(origin_of, origins)),
        key=b"" if key_file is None else key_in(key_file),
    )
    return Listening(host, port, access, "" if key_file is None else str(key_file.resolve()))


def main(arguments: list[str]) -> None:
    """Run `giaann serve` in a process of its own, with these arguments."""
    from giaann_p2p.cli.main import main as command

    sys.argv = ["giaann", "serve", *arguments]
    command()


def _report(status_file: str, url: str) -> None:
    """Report to the process that started this one that the gateway answers, and where."""
    if status_file:
        from giaann_p2p.local.status_file import READY, Status, StatusFile

        StatusFile(Path(status_file)).write(Status(state=READY, listen=urlsplit(url).netloc))


def _address(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    number = whole_number(port, _MOST_PORT)
    if not host or number is None:
        raise UsageError(f"--listen must be HOST:PORT, such as 127.0.0.1:8440, not {listen[:80]!r}")
    return host.removeprefix("[").removesuffix("]"), number


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _log(access: bool) -> None:
    from peers.log import log_to_stderr

    log_to_stderr(as_json=False, level="info" if access else "warning")


def _tell(url: str, facts: "Facts", listening: "Listening", is_first: bool, as_json: bool) -> None:
    if as_json:
        say_json({"url": url, "model": facts.model, "kind": facts.kind})
        return
    say(url)
    key = f"; the key is in {shlex.quote(listening.key_file)}" if listening.key_file else ""
    what = f"the {facts.kind} {facts.name}"
    complain(f"{what} is at {url}, for OpenAI's clients at {url}/v1{key}; Ctrl-C ends this")
    if not is_first:
        complain("another gateway to it runs on this machine; commands keep using that one")
