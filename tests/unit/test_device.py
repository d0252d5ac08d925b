"""Devices by name: those that are there, and a helpful word about those that are not."""

import pytest
import torch

from giaann_p2p.errors import DeviceError
from giaann_p2p.model.device import resolve


def test_auto_takes_cuda_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert resolve("auto") == torch.device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert resolve("auto") == torch.device("cpu")


def test_a_device_by_name(device: torch.device) -> None:
    assert resolve(str(device)) == device


@pytest.mark.parametrize("name", ["cuda:99", "bogus", "", "mps:7", "meta", "hpu"])
def test_what_is_not_there_is_refused_with_its_name_and_a_remedy(name: str) -> None:
    with pytest.raises(DeviceError) as caught:
        resolve(name)
    message = str(caught.value)
    assert message.startswith(f"no device {name!r} here (")
    assert message.endswith("try auto or cpu")
    assert "\n" not in message
