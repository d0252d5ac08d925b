"""A value that an option does not accept is told in words that say what to write."""

import pytest
import typer
from typer.main import get_command

from giaann_p2p.cli.main import app


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("prompt Bees --max-tokens x", "'x' is not a whole number"),
        ("prompt Bees --max-tokens 1.5", "'1.5' is not a whole number"),
        ("prompt Bees --max-tokens -3", "-3 is not in the range x>=1."),
        ("serve --prompts 100000", "100000 is not in the range 1<=x<=4096."),
        ("fsck --wait soon", "'soon' is not a number"),
        ("fsck --wait nan", "nan is not a number"),
        ("train a.txt --check nan", "nan is not a number"),
        ("train a.txt --patience nan", "nan is not a number"),
        ("swarm up --grace nan", "nan is not a number"),
        ("sim --seed 99999999999999999999", "99999999999999999999 is not in the range 0<=x<=9"),
        ("swarm add storage none", "'none' is not a whole number"),
        ("solo eval x --feed mine", "'mine' is not one of 'true', 'own'."),
        ("compute --slots many", "'many' is not a whole number"),
        ("sim --seeds x", "'x' is neither a seed nor a range of them, such as 0-99"),
    ],
)
def test_what_is_wrong_is_said_without_the_names_of_types(arguments: str, words: str) -> None:
    with pytest.raises(typer.BadParameter) as told:
        get_command(app).main(arguments.split(), standalone_mode=False)
    assert told.value.message.startswith(words)
    assert told.value.exit_code == 2


def test_a_missing_argument_is_told_as_ever() -> None:
    with pytest.raises(typer.BadParameter) as told:
        get_command(app).main(["column"], standalone_mode=False)
    assert "NOUN" in told.value.format_message()
