"""`giaann solo column`: shows what a brain on this machine learned about a noun."""

import typer

from giaann_p2p.cli.brain_options import Db, Json
from giaann_p2p.cli.column_shown import (
    MostLeads,
    MostWords,
    Noun,
    checked_noun,
    draw_if_wanted,
    show_column,
)
from giaann_p2p.cli.pictures.option import Picture
from giaann_p2p.exit_codes import NOTHING
from giaann_p2p.solo.directory import existing
from giaann_p2p.terminal import say_json


def column(
    noun: Noun,
    db: Db,
    words: MostWords = 16,
    leads: MostLeads = 4,
    picture: Picture = None,
    json_output: Json = False,
) -> None:
    """Show a noun's column: its words, how often each occurred, and what each leads to."""
    noun = checked_noun(noun)
    existing(db)
    import msgspec

    from giaann_p2p import Brain
    from giaann_p2p.gateway.brain_columns import column_of
    from giaann_p2p.gateway.views import ShownColumn

    with Brain.open(db, device="cpu", readonly=True) as brain:
        found = column_of(brain.store, noun, words, leads)
    found = found or ShownColumn(concept=noun, size=0, words=[])
    if json_output:
        plain = msgspec.to_builtins(found)
        say_json({name: plain[name] for name in ("concept", "size", "words")})
    else:
        show_column(found, "the brain")
    if not found.words:
        raise typer.Exit(NOTHING)
    draw_if_wanted(found, picture)
