"""Words to text that reads like text."""

import pytest

from giaann_p2p.model.render import Renderer, render


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("bees make honey .", "bees make honey."),
        ("bees , wasps ; ants : all ! really ?", "bees, wasps; ants: all! really?"),
        ("a ( b ) c [ d ] e { f } g", "a (b) c [d] e {f} g"),
        ("5 % of $ 3 and # 1 and £ 2", "5% of $3 and #1 and £2"),
        ("well - known 1990 – 2000 and / or", "well-known 1990–2000 and/or"),
        ("bee 's do n't we 've they ’ll", "bee's don't we've they’ll"),
        ("the bees ' honey", "the bees' honey"),
        ('he said " yes " twice', 'he said "yes" twice'),
        ('" yes " , he said', '"yes", he said'),
        ("“ yes ” and ‘ no ’ …", "“yes” and ‘no’…"),
        ("the spanish_civil_war ended", "the spanish civil war ended"),
        ("left-wing_party", "left-wing party"),
        ("", ""),
        ("* bee *", "* bee *"),
    ],
)
def test_words_are_joined_as_one_writes_them(words: str, text: str) -> None:
    assert render(words.split()) == text


def test_white_space_says_nothing() -> None:
    assert render(["bees", "  ", "make", "\n", "honey"]) == "bees make honey"
    assert render([" ", "bees"]) == "bees"


@pytest.mark.parametrize(
    ("text", "word", "appended"),
    [
        ("", "bees", "bees"),
        ("bees", "make", " make"),
        ("bees ", "make", "make"),
        ("bees\n", "make", "make"),
        ("bees (", "make", "make"),
        ("well-", "known", "known"),
        ("bees", ".", "."),
        ('he said "', "yes", "yes"),
        ('he said "yes', '"', '"'),
        ('he said "yes"', "twice", " twice"),
        ("he said", '"', ' "'),
    ],
)
def test_a_text_is_gone_on_with(text: str, word: str, appended: str) -> None:
    assert Renderer(text).append(word) == appended


def test_a_quotation_that_was_open_is_closed() -> None:
    renderer = Renderer('he said "yes')
    assert "".join(map(renderer.append, ["and", '"', "left", '"', "x", '"'])) == ' and" left "x"'
