"""A value that an option does not accept is told in words that say what to write."""

import pytest
import typer
from typer.main import get_command

from giaann_p2p.cli.main import app


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("prompt Bees --max-tokens x", "must be a whole number; it is x"),
        ("prompt Bees --max-tokens 1.5", "must be a whole number; it is 1.5"),
        ("prompt Bees --max-tokens -3", "must be 1 or more; it is -3"),
        ("serve --prompts 100000", "must be 4,096 or less; it is 100000"),
        ("fsck --wait soon", "must be a number; it is soon"),
        ("fsck --wait nan", "must be 0 or more; it is nan"),
        ("sim --seed 99999999999999999999", "must be 9,223,372,036,854,775,807 or less; it is 9"),
        ("swarm add storage none", "must be a whole number; it is none"),
        ("solo eval x --feed mine", "'mine' is not one of 'true', 'own'."),
        ("compute --slots many", "must be a whole number; it is many"),
        ("sim --seeds x", "'x' is neither a seed nor a range of them, such as 0-99"),
    ],
)
def test_what_is_wrong_is_said_without_the_words_of_a_validator(arguments: str, words: str) -> None:
    with pytest.raises(typer.BadParameter) as told:
        get_command(app).main(arguments.split(), standalone_mode=False)
    assert told.value.message.startswith(words)
    assert told.value.exit_code == 2


def test_a_missing_argument_is_told_as_ever() -> None:
    with pytest.raises(typer.BadParameter) as told:
        get_command(app).main(["column"], standalone_mode=False)
    assert "NOUN" in told.value.format_message()
