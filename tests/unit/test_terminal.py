"""What commands write does nothing to the terminal, whoever has said some of it."""

import json
import sys
from io import BytesIO, StringIO, TextIOWrapper

import pytest
from rich.console import Console

from giaann_p2p import terminal
from giaann_p2p.cli.doctor import _tell
from giaann_p2p.client.doctor.finding import problem
from giaann_p2p.errors import UsageError
from giaann_p2p.solo.export import tsv_line
from giaann_p2p.solo.reports import Connection
from giaann_p2p.terminal import (
    complain,
    joining,
    open_streams,
    printable,
    say,
    say_json,
    write_utf_8,
)

HOSTILE = "busy \x1b[31m\x07 \x9b2J\r \udcff"


def test_letters_that_command_a_terminal_are_replaced() -> None:
    assert (
        printable("bees \x1b[0m\n") == "bees \N{REPLACEMENT CHARACTER}[0m\N{REPLACEMENT CHARACTER}"
    )
    assert printable("ä\nb", also="\n") == "ä\nb"


def test_a_result_keeps_its_tabs_and_lines_and_orders_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    say("bees\t\x1b[31m\n\x9b2J\r wasps")
    assert capsys.readouterr().out == "bees\t\ufffd[31m\n\ufffd2J\ufffd wasps\n"


def test_json_keeps_what_it_does_not_write_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    told = "bees\t\x1b[31m\n\x9b2J\r \x7f wäsps"
    say_json({"text": told})
    out = capsys.readouterr().out
    assert out.removesuffix("\n").isprintable()
    assert json.loads(out) == {"text": told}


def output_in_ascii(monkeypatch: pytest.MonkeyPatch) -> BytesIO:
    """Let standard output go to a terminal that has only letters of ASCII."""
    written = BytesIO()
    monkeypatch.setattr(sys, "stdout", TextIOWrapper(written, encoding="ascii"))
    open_streams()
    return written


def test_letters_that_a_terminal_lacks_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    written = output_in_ascii(monkeypatch)
    say("wäsps")
    assert written.getvalue() == b"w?sps\n"


def test_json_says_what_a_terminal_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    written = output_in_ascii(monkeypatch)
    say_json({"text": "wäsps \N{HONEYBEE}\x9b"})
    assert written.getvalue() == b'{"text":"w\\u00e4sps \\ud83d\\udc1d\\u009b"}\n'
    assert json.loads(written.getvalue()) == {"text": "wäsps \N{HONEYBEE}\x9b"}


def test_data_is_in_utf_8_wherever_the_user_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    written = output_in_ascii(monkeypatch)
    write_utf_8()
    say("wäsps")
    assert written.getvalue() == "wäsps\n".encode()


def test_a_closed_stream_is_empty_or_takes_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    open_streams()
    with sys.stdin, sys.stdout, sys.stderr:
        say("bees")
        complain("wasps")
        assert sys.stdin.read() == ""


def test_a_field_of_an_export_orders_nothing() -> None:
    line = tsv_line(Connection("b\x1be\te", "\x9b", "wasp", None, 0, 1, 1.0, 65536))
    assert line.split("\t")[:4] == [r"b\x1be\te", r"\x9b", "wasp", "*"]


def test_a_complaint_keeps_its_lines_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    complain(f"a peer says\n{HOSTILE}")
    first, second = capsys.readouterr().err.splitlines()
    assert first == "giaann: a peer says"
    assert second.isprintable()
    assert second.startswith("busy ")


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> StringIO:
    """Let somebody watch standard error."""
    seen = StringIO()
    console = Console(file=seen, force_terminal=True, width=80)
    monkeypatch.setattr(terminal, "errors", lambda: console)
    monkeypatch.setattr(terminal, "_is_watched", lambda: True)
    return seen


def test_who_watches_sees_that_a_swarm_is_joined_until_it_is(watched: StringIO) -> None:
    with joining() as joined:
        before = watched.getvalue()
        assert "joining the swarm ..." in before
        joined()
        after = watched.getvalue()
        assert after.endswith("\x1b[2K")  # the line is empty again
        assert after.count("\x1b[?25h") == 1  # and the cursor is there
    assert watched.getvalue() == after


def test_it_is_gone_before_anything_is_said_of_why_that_failed(watched: StringIO) -> None:
    with pytest.raises(UsageError), joining():
        raise UsageError("no")
    assert "joining the swarm ..." in watched.getvalue()
    assert watched.getvalue().endswith("\x1b[2K")


def test_nothing_is_shown_to_programs_or_into_files(
    watched: StringIO, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with joining(quiet=True) as joined:
        joined()
    assert watched.getvalue() == ""
    monkeypatch.undo()
    with joining() as joined:
        joined()
    assert capsys.readouterr() == ("", "")


def test_what_the_doctor_finds_stays_on_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    _tell(problem("peer x", f"refuses: {HOSTILE}\nok all is well", "ask\x1b again"))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert all(line.isprintable() for line in lines)
