"""The traits of the profile `words`, which need no parser."""

import pytest

from giaann_p2p.model.ids import word_id
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.subwords.spec import subword_spec
from giaann_p2p.model.traits import traits_of


@pytest.mark.parametrize("spec", [ModelSpec(), subword_spec()], ids=["words", "subwords"])
@pytest.mark.parametrize("noun", ["f\udcc3", "\ud83e", "\udd92\ud83e", "civil \udcff war"])
def test_a_noun_that_is_no_utf_8_names_a_column_that_was_never_learned(
    spec: ModelSpec, noun: str
) -> None:
    for name in traits_of(spec.profile).column_names(noun, spec):
        assert word_id(name)
        assert name.encode()


def test_a_noun_names_its_column() -> None:
    assert traits_of("words").column_names(" Civil  War", ModelSpec()) == ["civil_war"]
    assert traits_of("words").column_names("Bée 🦒", ModelSpec()) == ["bée_🦒"]
    assert traits_of("words").column_names("f\udcc3", ModelSpec()) == ["f\ufffd"]
