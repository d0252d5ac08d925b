"""A group of commands, each of which is imported only when it is used.

Importing all commands, and building their options, takes a tenth of a second of processor time.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from giaann_p2p.cli.wrong_values import worded
from giaann_p2p.exit_codes import EXPLAINED


class Commands(Mapping[str, Any]):
    """Commands by name, given as `module:attribute`; each is imported when it is first read.

    The attribute is a function, or a Typer app with commands of its own.
    """

    def __init__(self, homes: Mapping[str, str]) -> None:
        self._homes = homes
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401  (typer hides the type of commands)
        if name not in self._loaded:
            self._loaded[name] = _loaded(name, self._homes[name])
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)


def lazy_group(homes: Mapping[str, str]) -> type[TyperGroup]:
    """Return a class of groups with the commands of `homes`, for Typer's argument `cls`."""

    class LazyGroup(TyperGroup):
        def __init__(self, **attributes: Any) -> None:  # noqa: ANN401
            super().__init__(**attributes)
            self.commands: Any = Commands(homes)

        def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
            try:
                return super().invoke(ctx)
            except typer.BadParameter as error:
                raise worded(error) from error.__cause__

    return LazyGroup


def _loaded(name: str, home: str) -> Any:  # noqa: ANN401
    module, _, attribute = home.partition(":")
    found = getattr(import_module(module), attribute)
    if isinstance(found, typer.Typer):
        command: Any = get_group(found)
    else:
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        app.command(epilog=EXPLAINED)(found)
        command = get_command(app)
    command.name = name
    return command
