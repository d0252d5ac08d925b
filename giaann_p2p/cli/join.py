"""`giaann join`: saves join links under names, which every command accepts as links."""

from typing import Annotated

import typer

from giaann_p2p.cli.link_option import Json
from giaann_p2p.terminal import say, say_json


def join(
    link: Annotated[
        str | None,
        typer.Argument(
            metavar="[LINK]", help="The link to save; without it, all saved links are listed."
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Save the link under this name.")
    ] = None,
    forget: Annotated[
        str | None,
        typer.Option(
            "--forget", metavar="NAME", help="Delete the link that is saved under this name."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Save a join link under a name; `--join NAME` then stands for the link everywhere.

    No peer is dialled; `giaann doctor --join NAME` tests the link.
    """
    from giaann_p2p.client.links import SavedLinks, read_link

    if (link is None) != (name is None):
        raise typer.BadParameter("to save a link, give both: giaann join LINK --as NAME")
    saved = SavedLinks()
    if forget is not None:
        saved.forget(forget)
    if link is not None and name is not None:
        saved.save(name, read_link(link))
        say(f"saved: --join {name} now stands for this link")
    elif forget is None:
        links = saved.all()
        if as_json:
            say_json(links)
        else:
            for one, whole in sorted(links.items()):
                say(f"{one}  {whole}")
