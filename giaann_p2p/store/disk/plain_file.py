"""Opens files safely in a folder with contents from elsewhere.

A folder that was restored, copied or passed on may hold a pipe where a file should be, and an
ordinary open would wait on it forever. Or it may hold a symbolic link where a draft is written, and
an ordinary open would follow it to any file of the user.
"""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_plain(path: Path) -> BinaryIO:
    """Open a file for reading; fail at once with OSError if it is a pipe, a device or a folder."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "not a plain file; remove it")
    return os.fdopen(number, "rb")


def open_draft(path: Path) -> BinaryIO:
    """Create a file for writing; an existing file or link is removed, and never followed."""
    path.unlink(missing_ok=True)
    return path.open("xb")
