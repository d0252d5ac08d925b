"""Builds a daemon's command from its options: one flag per field, and --config for a TOML file."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar, get_args, get_origin

import msgspec
import typer

from giaann_p2p.client.links import full_link
from giaann_p2p.errors import GiaannError
from giaann_p2p.exit_codes import EXPLAINED, FAILED
from giaann_p2p.terminal import complain
from peers.options import Options, described, options

Kind = TypeVar("Kind", bound=Options)


def command(kind: type[Kind], run: Callable[[Kind], None]) -> Callable[..., None]:
    """Return a command for typer that reads and checks a daemon's options, and runs it."""

    def told(config: Path | None = None, **given: object) -> None:
        found = options(kind, {n: v for n, v in given.items() if v not in (None, [])}, config)
        found = _with_whole_link(found)
        found.check()
        run(found)

    told.__doc__ = kind.summary
    texts = described(kind)
    fields = [field for field in msgspec.structs.fields(kind) if field.name in texts]
    fields.sort(key=lambda field: not field.required)
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
            metavar="FILE", help="TOML file with these options; docs/configuration.md shows one."
        ),
    ],
)


def exit_code(told: Callable[..., None], arguments: list[str]) -> int:
    """Run a daemon's command with these arguments; return the exit code for its process."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(epilog=EXPLAINED)(told)
    try:
        app(arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else FAILED
    except GiaannError as error:
        complain(str(error))
        return error.exit_code
    return 0


def _with_whole_link(found: Kind) -> Kind:
    """Return the options with the full join link in place of a saved name."""
    join = getattr(found, "join", "")
    return msgspec.structs.replace(found, join=full_link(join)) if join else found


def _parameter(field: msgspec.structs.FieldInfo, meta: msgspec.Meta) -> inspect.Parameter:
    kind = get_args(field.type)[0]
    form = (meta.extra or {}).get("form") or None
    option = typer.Option(help=f"{meta.description}{_default(field.default)}", metavar=form)
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[(list[str] if get_origin(kind) is tuple else kind) | None, option],
    )


def _default(value: object) -> str:
    """Return an option's default as the help shows it; empty if it has none or an empty one."""
    if value in ("", (), False, msgspec.NODEFAULT):
        return ""
    shown = ", ".join(value) if isinstance(value, tuple) else value
    return rf" \[default: {shown}]"  # without the backslash, rich would take it for a style
