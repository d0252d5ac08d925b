"""The page's files: served as what they are, whole, and free of what its policy forbids."""

import hashlib
import re
from importlib.resources import files
from pathlib import Path

import pytest

from giaann_p2p.gateway.assets import TYPES, page
from tests.unit.gateway.raw import asked
from tests.unit.gateway.serving import served

PAGE = Path(str(files("giaann_p2p.gateway") / "page"))
FILES = sorted(path for path in PAGE.rglob("*") if path.is_file())
OWN = [path for path in FILES if "vendor" not in path.parts]
ROW = re.compile(r"^\| (\S+) \| .* \| ([0-9a-f]{64}) \|$", re.MULTILINE)
NAMESPACE = "http://www.w3.org/2000/svg"
"""The one address that is no place to load from."""


def test_every_file_is_served_with_its_type() -> None:
    with served() as at:
        for path in FILES:
            name = path.relative_to(PAGE).as_posix()
            url = "/" if name == "index.html" else f"/assets/{name}"
            status, reply = asked(at.port, "GET", url)
            head = reply.partition(b"\r\n\r\n")[0].decode().lower()
            assert status == 200, name
            assert f"content-type: {TYPES[path.suffix[1:]]}" in head, name
            assert page()[url].body == path.read_bytes(), name


def test_what_is_vendored_is_as_its_package_has_it() -> None:
    vendor = PAGE / "vendor"
    listed = dict(ROW.findall((vendor / "VENDORED.md").read_text()))
    found = {
        path.relative_to(vendor).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in vendor.rglob("*")
        if path.is_file() and path.name != "VENDORED.md"
    }
    assert found == listed


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_nothing_is_loaded_from_elsewhere_or_written_as_markup(path: Path) -> None:
    text = path.read_text().replace(NAMESPACE, "")
    assert not re.search(r"https?://|[\"'(]//\w", text)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text)
    assert "dangerouslySetInnerHTML" not in text
    if path.suffix in (".html", ".svg"):
        assert not re.search(r"\son\w+=|\sstyle=|<style|javascript:", text, re.IGNORECASE)
        assert not re.search(r"<script(?![^>]*\ssrc=)", text)


def test_every_import_and_every_address_of_the_page_leads_to_a_file() -> None:
    for path in OWN:
        for name in re.findall(r'from "(\.[^"]+)"', path.read_text()):
            assert (path.parent / name).resolve() in FILES, (path.name, name)
    addresses = re.findall(r'(?:src|href)="(/assets/[^"]+)"', (PAGE / "index.html").read_text())
    assert addresses
    assert set(addresses) <= set(page())
