"""`--picture` is refused in words before anything is fetched."""

import sys
from pathlib import Path

import pytest

from giaann_p2p.cli.pictures.option import picture_file
from giaann_p2p.errors import UsageError


@pytest.mark.parametrize("name", ["bee.svg", "bee.png", "BEE.SVG"])
def test_a_file_that_can_be_drawn(tmp_path: Path, name: str) -> None:
    assert picture_file(str(tmp_path / name)) == tmp_path / name


@pytest.mark.parametrize("name", ["bee.jpg", "bee", "svg", ""])
def test_another_format_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"ends in \.svg or \.png, not "):
        picture_file(str(tmp_path / name) if name else "")


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no folder .*none"):
        picture_file(str(tmp_path / "none" / "bee.svg"))
    with pytest.raises(UsageError, match="there is no folder xxx"):
        picture_file(f"{'x' * 5000}/bee.svg")


def test_without_matplotlib_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"pip install 'giaann-p2p\[pictures\]'") as error:
        picture_file(str(tmp_path / "bee.svg"))
    assert "\n" not in str(error.value)
