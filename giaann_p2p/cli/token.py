"""`giaann token`: who may join a swarm that not everybody may, from both sides."""

import asyncio
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from giaann_p2p.cli.health import Join, Json
from giaann_p2p.errors import UsageError
from giaann_p2p.terminal import say, say_json

if TYPE_CHECKING:
    from giaann_p2p.swarm.token import Token

app = typer.Typer(
    no_args_is_help=True,
    help="Members of a swarm that was founded with --token; of any swarm, who is welcome no more.",
)
Name = Annotated[
    str, typer.Argument(metavar="PEER", help="The peer's name, as `giaann token name` prints it.")
]
GiversFolder = Annotated[
    Path,
    typer.Option(
        "--data-dir",
        metavar="FOLDER",
        help="Folder of the bootstrap peer that founded the swarm, or a delegate's.",
    ),
]
_DAY = 24 * 3600


@app.command("name")
def name(
    join: Join,
    role: Annotated[
        str, typer.Option("--role", help="For what: client, storage, compute or bootstrap.")
    ] = "client",
    data_dir: Annotated[
        Path | None,
        typer.Option("--data-dir", metavar="FOLDER", help="The daemon's, if not the usual one."),
    ] = None,
) -> None:
    """Print the name of this machine's peer, to be sent to who gives tokens.

    The peer's key is made if there is none yet.
    """
    from giaann_p2p.node.membership import Membership, usual_folder_in
    from giaann_p2p.swarm.identity import to_text
    from giaann_p2p.swarm.link import Link

    if role not in ("client", "storage", "compute", "bootstrap"):
        raise typer.BadParameter(f"--role is client, storage, compute or bootstrap, not {role!r}")
    folder = data_dir or usual_folder_in(Link.read(join).swarm_id, role)
    say(to_text(Membership(folder).identity.peer))


@app.command("issue")
def issue(
    peer: Name,
    data_dir: GiversFolder,
    rights: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="RIGHTS",
            help="What it may be: storage, compute, client, delegate; several with commas. "
            "A delegate gives tokens, too.",
        ),
    ] = "client",
    days: Annotated[int, typer.Option(min=1, max=36500, help="For how long.")] = 365,
) -> None:
    """Give a peer a token, as the founder or as one of its delegates; it is printed."""
    from giaann_p2p.node.membership import Giver
    from giaann_p2p.swarm.identity import peer_of
    from giaann_p2p.swarm.token import Rights

    until = int(time.time()) + days * _DAY
    say(str(Giver(data_dir).given(peer_of(peer), Rights.named(rights), until)))


@app.command("accept")
def accept(
    token: Annotated[str, typer.Argument(metavar="TOKEN", help="The token, or a file with it.")],
    role: Annotated[str, typer.Option("--role", help="For which of this machine's peers.")] = (
        "client"
    ),
    data_dir: Annotated[
        Path | None,
        typer.Option("--data-dir", metavar="FOLDER", help="The daemon's, if not the usual one."),
    ] = None,
) -> None:
    """Keep a token that was given to this machine; for clients, if nothing else is said."""
    from giaann_p2p.node.membership import Membership, text_of, usual_folder_in
    from giaann_p2p.swarm.token import Token

    swarm_id = Token.from_text(text_of(token)).swarm_id
    membership = Membership(data_dir or usual_folder_in(swarm_id, role))
    kept = membership.accept(token)
    say(f"kept in {membership.folder}: {_lasts(kept)}")


@app.command("inspect")
def inspect(
    token: Annotated[str, typer.Argument(metavar="TOKEN", help="The token, or a file with it.")],
    as_json: Json = False,
) -> None:
    """Tell what a token says. Whether it is right is for the swarm to say: `giaann doctor`."""
    from giaann_p2p.node.membership import text_of
    from giaann_p2p.swarm.identity import to_text
    from giaann_p2p.swarm.token import Rights, Token

    found = Token.from_text(text_of(token))
    if as_json:
        grants = [
            {"member": to_text(one.member), "rights": str(Rights(one.rights)), "until": one.until}
            for one in found.grants
        ]
        say_json({"swarm": to_text(found.swarm_id), "grants": grants})
        return
    say(f"swarm   {to_text(found.swarm_id)}")
    giver = "its founder"
    for one in found.grants:
        say(
            f"{giver} lets {to_text(one.member)} be: {Rights(one.rights)}, until {_date(one.until)}"
        )
        giver = to_text(one.member)


@app.command("revoke")
def revoke(
    peers: Annotated[list[str], typer.Argument(metavar="PEER...", help="Their names.")],
    join: Join,
    data_dir: GiversFolder,
    restore: Annotated[
        bool, typer.Option("--restore", help="Take them off the list of the revoked instead.")
    ] = False,
    disown: Annotated[
        bool,
        typer.Option("--disown", help="Also withdraw what they alone taught."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Make peers strangers, at once and for good, with all that they have let in.

    The founder alone can, also in an open swarm. The swarm is told; who is away
    hears of it when it comes back. --disown also takes what they alone taught out
    of all columns, as far back as most owners remember (`giaann storage
    --remember`); `giaann token withdraw` looks once more.
    """
    from giaann_p2p.cli.withdrawing import Founding
    from giaann_p2p.node.membership import Giver
    from giaann_p2p.swarm.identity import peer_of

    giver, named = Giver(data_dir), {peer_of(one) for one in peers}
    if restore and disown:
        raise UsageError("--restore and --disown: one of them, please")
    founding = Founding(join, giver, as_json=as_json)
    if restore:
        giver.revoke(set(), named)
    else:
        giver.revoke(named, set(), named if disown else ())
    asyncio.run(founding.carry_out(withdraws=disown))


@app.command("withdraw")
def withdraw(
    join: Join,
    data_dir: GiversFolder,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be withdrawn.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Withdraw what disowned peers alone taught and is there still.

    `giaann token revoke --disown` does this, too; once more helps where owners
    were away, or did not answer. The founder alone can.
    """
    from giaann_p2p.cli.withdrawing import Founding
    from giaann_p2p.node.membership import Giver

    giver = Giver(data_dir)
    if not giver.list.disowned:
        raise UsageError("nobody is disowned: `giaann token revoke PEER --disown` comes first")
    founding = Founding(join, giver, as_json=as_json, dry_run=dry_run)
    giver.withdraw({})  # owners look anew for each edition
    asyncio.run(founding.carry_out(withdraws=True))


def _lasts(token: "Token") -> str:
    from giaann_p2p.swarm.token import Rights

    last = token.grants[-1]
    return f"{Rights(last.rights)}, until {_date(last.until)}"


def _date(until: int) -> str:
    try:
        return f"{datetime.fromtimestamp(until, UTC):%Y-%m-%d %H:%M} UTC"
    except (OverflowError, ValueError, OSError):
        return "the end of time"
