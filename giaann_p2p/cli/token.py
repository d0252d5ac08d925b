"""`giaann token`: issues and keeps tokens, revokes peers, and withdraws what they taught."""

import asyncio
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from giaann_p2p.cli.link_option import Join, Json
from giaann_p2p.errors import UsageError
from giaann_p2p.node.members.token_text import text_of
from giaann_p2p.terminal import say, say_json

if TYPE_CHECKING:
    from giaann_p2p.swarm.wire.token import Token

app = typer.Typer(
    no_args_is_help=True,
    help="Admit peers to a swarm, revoke them, and withdraw what they taught.",
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
        str, typer.Option("--role", help="Role: client, storage, compute or bootstrap.")
    ] = "client",
    data_dir: Annotated[
        Path | None,
        typer.Option(
            "--data-dir", metavar="FOLDER", help="The daemon's folder, if it is not the default."
        ),
    ] = None,
) -> None:
    """Print the name of this machine's peer, to send to the founder or a delegate.

    The peer's key is created if there is none yet.
    """
    from giaann_p2p.node.members.membership import Membership, usual_folder_in
    from giaann_p2p.swarm.wire.identity import to_text
    from giaann_p2p.swarm.wire.link import Link

    _check_role(role)
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
            help="The peer's rights: storage, compute, client, delegate; separated by commas. "
            "A delegate may issue tokens, too.",
        ),
    ] = "client",
    days: Annotated[
        int, typer.Option(min=1, max=36500, help="Days until the token expires.")
    ] = 365,
    standing: Annotated[
        bool,
        typer.Option(
            "--standing",
            help="Also give the peer standing at once. A newcomer's pushes are limited, and its "
            "replicas do not count yet. Works in open swarms, too.",
        ),
    ] = False,
) -> None:
    """Issue a token to a peer, as the founder or one of its delegates, and print it."""
    from giaann_p2p.node.members.membership import TokenIssuer
    from giaann_p2p.swarm.wire.identity import peer_of
    from giaann_p2p.swarm.wire.token import Rights

    until = int(time.time()) + days * _DAY
    may = Rights.named(rights) | (Rights.STANDING if standing else Rights(0))
    say(str(TokenIssuer(data_dir).given(peer_of(peer), may, until)))


@app.command("accept")
def accept(
    token: Annotated[
        str, typer.Argument(metavar="TOKEN", help="The token, or a file that contains it.")
    ],
    role: Annotated[
        str, typer.Option("--role", help="Which of this machine's peers the token is for.")
    ] = "client",
    data_dir: Annotated[
        Path | None,
        typer.Option(
            "--data-dir", metavar="FOLDER", help="The daemon's folder, if it is not the default."
        ),
    ] = None,
) -> None:
    """Save a token that was issued to a peer on this machine, its client by default."""
    _check_role(role)
    from giaann_p2p.swarm.wire.token import Token

    swarm_id = Token.from_text(text_of(token)).swarm_id
    from giaann_p2p.node.members.membership import Membership, usual_folder_in

    membership = Membership(data_dir or usual_folder_in(swarm_id, role))
    kept = membership.accept(token)
    say(f"saved in {membership.folder}: {_lasts(kept)}")


@app.command("inspect")
def inspect(
    token: Annotated[
        str, typer.Argument(metavar="TOKEN", help="The token, or a file that contains it.")
    ],
    as_json: Json = False,
) -> None:
    """Show what a token grants, without checking it; `giaann doctor` checks it with the swarm."""
    from giaann_p2p.swarm.wire.identity import to_text
    from giaann_p2p.swarm.wire.token import Rights, Token

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
    peers: Annotated[list[str], typer.Argument(metavar="PEER...", help="The names of the peers.")],
    join: Join,
    data_dir: GiversFolder,
    restore: Annotated[
        bool, typer.Option("--restore", help="Remove them from the list of revoked peers instead.")
    ] = False,
    disown: Annotated[
        bool,
        typer.Option("--disown", help="Also withdraw what only these peers taught."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Revoke peers at once, with all peers that they have admitted.

    Only the founder can do this, also in an open swarm. All peers are told; a peer
    that is away learns of it when it returns. --disown also removes what only the
    revoked peers taught from all columns, as far back as most owners remember
    (`giaann storage --remember`); `giaann token withdraw` searches again.
    """
    from giaann_p2p.cli.withdrawing import Founding
    from giaann_p2p.node.members.membership import TokenIssuer
    from giaann_p2p.swarm.wire.identity import peer_of

    giver, named = TokenIssuer(data_dir), {peer_of(one) for one in peers}
    if restore and disown:
        raise UsageError("--restore and --disown exclude each other: give one of them")
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
    author: Annotated[
        list[str] | None,
        typer.Option(
            "--by", metavar="PEER", help="Chunks that only this peer taught; may be repeated."
        ),
    ] = None,
    job: Annotated[
        list[str] | None,
        typer.Option(
            "--job",
            metavar="JOB",
            help="All chunks of this job, taught by any peer; may be repeated.",
        ),
    ] = None,
    since: Annotated[
        str,
        typer.Option(
            "--since",
            metavar="TIME",
            help="Chunks that peers without standing pushed since a local time, at most a day ago: "
            "12:03 or 2027-01-31T12:03.",
        ),
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be withdrawn.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Withdraw what only disowned peers taught, and what --by, --job and --since find.

    `giaann token revoke --disown` also does the former; a second search helps if owners
    were away, or did not answer. Only the founder can do this.
    """
    from giaann_p2p.cli.searching import sought_of
    from giaann_p2p.cli.withdrawing import Founding
    from giaann_p2p.node.members.membership import TokenIssuer

    sought = sought_of(author or (), job or (), since, time.time())
    giver = TokenIssuer(data_dir)
    if not sought and not giver.list.disowned:
        raise UsageError(
            "nobody is disowned: run `giaann token revoke PEER --disown` first, or name what to "
            "withdraw with --by, --job or --since"
        )
    founding = Founding(join, giver, as_json=as_json, dry_run=dry_run)
    giver.withdraw({}, sought)  # a new edition of the list makes the owners search again
    asyncio.run(founding.carry_out(withdraws=True))


def _check_role(role: str) -> None:
    """Raise BadParameter unless a peer can have a role."""
    if role not in ("client", "storage", "compute", "bootstrap"):
        raise typer.BadParameter(
            f"--role must be client, storage, compute or bootstrap, not {role!r}"
        )


def _lasts(token: "Token") -> str:
    from giaann_p2p.swarm.wire.token import Rights

    last = token.grants[-1]
    return f"{Rights(last.rights)}, until {_date(last.until)}"


def _date(until: int) -> str:
    try:
        return f"{datetime.fromtimestamp(until, UTC):%Y-%m-%d %H:%M} UTC"
    except (OverflowError, ValueError, OSError):
        return "the end of time"
