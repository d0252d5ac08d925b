"""The blocks of docs/ are typed as they stand, against swarms of real processes."""

from collections.abc import Iterator

import pytest

from tests.cli.conftest import TEXT
from tests.docs.plays import in_scene
from tests.docs.reader import Reader
from tests.unit.local.helpers import eventually, processes_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]


@pytest.fixture
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    folder = tmp_path_factory.mktemp("clone")
    with Reader(folder) as reader:
        for name in ("book.txt", "text.txt"):
            (folder / name).write_text(TEXT)
        yield reader
    eventually(lambda: not processes_of(folder))


@pytest.mark.parametrize("scene", ["network", "club", "local", "simulator"])
def test_a_scene(scene: str, reader: Reader) -> None:
    for play in in_scene(scene):
        reader.play(play)
