"""The page's files: a fixed list, read once from the package, so that no path leads elsewhere."""

import hashlib
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "mjs": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "json": "application/json",
    "map": "application/json",
    "webmanifest": "application/manifest+json",
    "svg": "image/svg+xml",
    "png": "image/png",
    "ico": "image/x-icon",
    "jpg": "image/jpeg",
    "woff2": "font/woff2",
    "txt": "text/plain; charset=utf-8",
    "md": "text/plain; charset=utf-8",
}
"""The suffixes of files that are served, with their types; others in the folder are not."""
_INDEX = "index.html"


class Asset(NamedTuple):
    """A file of the page."""

    body: bytes
    type: str
    tag: str

    def response(self, request: Request) -> Response:
        """Return the file, or 304 if the browser has it already."""
        headers = {"etag": self.tag, "cache-control": "no-cache"}
        given = request.headers.get("if-none-match", "")
        if self.tag in [one.strip().removeprefix("W/") for one in given.split(",")]:
            return Response(status_code=304, headers=headers)
        return Response(self.body, 200, headers, self.type)


def page() -> dict[str, Asset]:
    """Return the page's files by the path at which they are served."""
    root = files("giaann_p2p.gateway") / "page"
    found = dict(_walk(root, ""))
    index = found.pop(_INDEX, None)
    served = {f"/assets/{name.removeprefix('assets/')}": asset for name, asset in found.items()}
    return served if index is None else {"/": index, **served}


def _walk(folder: Traversable, before: str) -> Iterator[tuple[str, Asset]]:
    for one in folder.iterdir():
        name = before + one.name
        if one.is_dir():
            yield from _walk(one, f"{name}/")
        elif kind := TYPES.get(one.name.rpartition(".")[2].lower()):
            body = one.read_bytes()
            tag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
            yield name, Asset(body, kind, tag)
