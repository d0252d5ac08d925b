"""A daemon's command, made from its options: one for each field, and --config for a file."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar, get_args, get_origin

import msgspec
import typer

from giaann_p2p.errors import GiaannError
from giaann_p2p.terminal import EXIT_CODES, FAILED, complain
from peers.options import Options, described, options

Kind = TypeVar("Kind", bound=Options)


def command(kind: type[Kind], run: Callable[[Kind], None], summary: str) -> Callable[..., None]:
    """Return a function for typer that reads the options and runs with them."""

    def told(config: Path | None = None, **given: object) -> None:
        run(options(kind, {n: v for n, v in given.items() if v not in (None, [])}, config))

    told.__doc__ = summary
    texts = described(kind)
    fields = sorted(msgspec.structs.fields(kind), key=lambda field: not field.required)
    parameters = [_parameter(field, texts[field.name]) for field in fields] + [_CONFIG]
    vars(told)["__signature__"] = inspect.Signature(parameters)
    told.__annotations__ = {one.name: one.annotation for one in parameters}
    return told


_CONFIG = inspect.Parameter(
    "config",
    inspect.Parameter.KEYWORD_ONLY,
    default=None,
    annotation=Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="TOML file with these options; docs/configuration.md has one."
        ),
    ],
)


def exit_code(told: Callable[..., None], arguments: list[str]) -> int:
    """Run a command as the whole of a process would, and return its exit code."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(epilog=EXIT_CODES)(told)
    try:
        app(arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else FAILED
    except GiaannError as error:
        complain(str(error))
        return FAILED
    return 0


def _parameter(field: msgspec.structs.FieldInfo, told: msgspec.Meta) -> inspect.Parameter:
    kind = get_args(field.type)[0]
    form = (told.extra or {}).get("form") or None
    option = typer.Option(help=f"{told.description}{_default(field.default)}", metavar=form)
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[(list[str] if get_origin(kind) is tuple else kind) | None, option],
    )


def _default(value: object) -> str:
    """Return how a default is shown; not at all where it says nothing."""
    if value in ("", (), False, msgspec.NODEFAULT):
        return ""
    shown = ", ".join(value) if isinstance(value, tuple) else value
    return rf" \[default: {shown}]"  # without the stroke the terminal takes it for a style
