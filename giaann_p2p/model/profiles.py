"""Chooses the profile that a spec names."""

from giaann_p2p.model.profile import Profile
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.subwords.profile import SubwordsProfile
from giaann_p2p.model.words_profile import WordsProfile

PROFILES = ("words", "subwords")
"""The names of the profiles."""


def profile_of(spec: ModelSpec) -> Profile:
    """Return the profile of a spec."""
    return SubwordsProfile(spec) if spec.profile == "subwords" else WordsProfile(spec)
