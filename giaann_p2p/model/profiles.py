"""Chooses the profile that a spec names."""

import torch

from giaann_p2p.model.profile import AnyProfile
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.subwords.profile import SubwordsProfile
from giaann_p2p.model.words_profile import WordsProfile

CPU = torch.device("cpu")


def profile_of(spec: ModelSpec, device: torch.device = CPU) -> AnyProfile:
    """Return the profile of a spec, to be used on a device."""
    if spec.profile == "subwords":
        return SubwordsProfile(spec, device)
    return WordsProfile(spec, device)
