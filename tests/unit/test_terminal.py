"""What commands write does nothing to the terminal, whoever has said some of it."""

import pytest

from giaann_p2p.cli.doctor import _tell
from giaann_p2p.client.doctor.finding import problem
from giaann_p2p.terminal import complain, printable

HOSTILE = "busy \x1b[31m\x07 \x9b2J\r \udcff"


def test_letters_that_command_a_terminal_are_replaced() -> None:
    assert (
        printable("bees \x1b[0m\n") == "bees \N{REPLACEMENT CHARACTER}[0m\N{REPLACEMENT CHARACTER}"
    )
    assert printable("ä\nb", also="\n") == "ä\nb"


def test_a_complaint_keeps_its_lines_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    complain(f"a peer says\n{HOSTILE}")
    first, second = capsys.readouterr().err.splitlines()
    assert first == "giaann: a peer says"
    assert second.isprintable()
    assert second.startswith("busy ")


def test_what_the_doctor_finds_stays_on_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    _tell(problem("peer x", f"refuses: {HOSTILE}\nok all is well", "ask\x1b again"))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert all(line.isprintable() for line in lines)
