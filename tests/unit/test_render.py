"""Words to text that reads like text."""

from collections.abc import Iterable

import pytest

from giaann_p2p.model.render import Renderer


def written(words: Iterable[str], text: str = "") -> str:
    return "".join(map(Renderer(text).append, words))


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("bees make honey .", "bees make honey."),
        ("bees , wasps ; ants : all ! really ?", "bees, wasps; ants: all! really?"),
        ("a ( b ) c [ d ] e { f } g", "a (b) c [d] e {f} g"),
        ("5 % of $ 3 and # 1 and £ 2", "5% of $3 and #1 and £2"),
        ("well - known and / or", "well-known and/or"),
        ("a dash – or two — is a word", "a dash – or two — is a word"),
        ("anti_-_capitalism does n’t_compile", "anti-capitalism doesn’t compile"),
        ("__init__ _ a__b", "__init__ _ a__b"),
        ("i can not , gon na , got ta , y' all c’m on", "i cannot, gonna, gotta, y'all c’mon"),
        ("i do nt run windows nt , all on not", "i dont run windows nt, all on not"),
        ("bee 's do n't we 've they ’ll", "bee's don't we've they’ll"),
        ("the bees ' honey", "the bees' honey"),
        ("the bee ' honey", "the bee' honey"),  # a plural by its lemma
        ("he said ' yes ' twice", "he said 'yes' twice"),
        ("' yes ' , he said : ' no '", "'yes', he said: 'no'"),
        ('it ends " so . " and so . \'', 'it ends "so." and so.\''),
        ('it began earlier . "', 'it began earlier."'),
        ("a ( b ;) c ;)", "a (b;) c ;)"),
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
    assert written(words.split()) == text


def test_white_space_says_nothing() -> None:
    assert written(["bees", "  ", "make", "\n", "honey"]) == "bees make honey"
    assert written([" ", "bees"]) == "bees"


@pytest.mark.parametrize(
    ("text", "word", "appended"),
    [
        ("", "bees", "bees"),
        ("bees", "make", " make"),
        ("bees ", "make", "make"),
        ("bees\n", "make", "make"),
        ("bees (", "make", "make"),
        ("well-", "known", "known"),
        ("the man—", "who", "who"),
        ("the man —", "who", " who"),
        ("he said 'don't go", "'", "'"),
        ("he said '", "don't", "don't"),
        ("the bees'", "honey", " honey"),
        ("the (so to say", ":)", ":)"),
        ("I CAN", "not", "not"),
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
    assert written(["and", '"', "left", '"', "x", '"'], 'he said "yes') == ' and" left "x"'
    assert written(["and", "'", "by", "'", "x", "'"], "he said 'yes") == " and' by 'x'"


@pytest.mark.parametrize(
    ("text", "rest", "completion"),
    [
        ("the Spanish", "_civil_war", " civil war"),
        ("the Spanish ", "_civil_war", "civil war"),
        ("the left", "-wing_party", "-wing party"),
        ("the left ", "-wing_party", "-wing party"),
        ("anti", "_-_capitalism", "-capitalism"),
        ("the Spanish", "", ""),
    ],
)
def test_a_word_is_completed(text: str, rest: str, completion: str) -> None:
    renderer = Renderer(text)
    assert renderer.complete(rest) == completion
    assert renderer.append("ended") == ("" if text.endswith(" ") and not rest else " ") + "ended"
