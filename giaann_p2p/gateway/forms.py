"""Reads the file in a form (`multipart/form-data`), as `curl -F file=@FILE` and browsers send it.

The guard has read and bounded the body, so the form is split in memory. A request teaches one text,
therefore a form has exactly one file; its other fields are ignored. The file's name is only a
label, so escapes in it are left as they are.
"""

import re

from giaann_p2p.gateway.failures import BadField

_MOST_PARTS = 64
_MOST_HEAD = 8192
"""Bytes of the headers of one part."""
_BOUNDARY = re.compile(r';\s*boundary="?([^";,]+)', re.IGNORECASE)
_FILE = re.compile(rb';\s*filename\*?="?([^"\r\n]*)', re.IGNORECASE)


def file_in(content_type: str, body: bytes) -> tuple[str, bytes]:
    """Return the name and the content of the file in a form; BadField unless it has one file."""
    boundary = _BOUNDARY.search(content_type)
    if boundary is None:
        raise BadField("the form has no boundary in its Content-Type", None)
    # A delimiter begins with the end of a line, which the first one may lack. What precedes the
    # first one is not a part; "--" follows the last one.
    delimiter = b"\r\n--" + boundary[1].strip().encode()
    parts = (b"\r\n" + body).split(delimiter, _MOST_PARTS + 1)
    if not parts[-1].startswith(b"--"):
        raise BadField(f"the form is cut off, or has more than {_MOST_PARTS} parts", None)
    files = [found for part in parts[1:-1] if (found := _file(part))]
    if len(files) != 1:
        raise BadField(f"the form must have one file; it has {len(files)}", None)
    return files[0]


def _file(part: bytes) -> tuple[str, bytes] | None:
    """Return the name and the content of a part; None if it is not a file."""
    head, _, content = part.partition(b"\r\n\r\n")
    found = _FILE.search(head, 0, _MOST_HEAD)
    return None if found is None else (found[1].decode(errors="replace"), content)
