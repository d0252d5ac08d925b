"""What `--help` says is shown whole: rich takes a word in brackets for a style, and drops it."""

from collections.abc import Iterator

import click
import pytest
from rich.markup import render
from typer.main import get_command

from giaann_p2p.cli.main import app


def _commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    for name, one in getattr(command, "commands", {}).items():
        yield from _commands(one, f"{path} {name}")


COMMANDS = dict(_commands(get_command(app), "giaann"))


@pytest.mark.parametrize("path", COMMANDS)
def test_no_word_of_a_help_text_is_taken_for_a_style(path: str) -> None:
    command = COMMANDS[path]
    texts = [getattr(one, "help", "") or "" for one in (command, *command.params)]
    for text in texts:
        assert render(text).plain == text.replace("\\[", "[")
