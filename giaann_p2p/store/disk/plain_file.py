"""Opens files safely in a folder whose contents may come from elsewhere.

A folder that was restored, copied or passed on may hold a pipe in place of a file; an ordinary open
would wait on the pipe forever. Or it may hold a symbolic link in place of a draft; an ordinary open
would follow the link, and overwrite any file of the user.
"""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_plain(path: Path) -> BinaryIO:
    """Open a file for reading; raise OSError at once if it is a pipe, a device or a folder."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "not a plain file; remove it")
    return os.fdopen(number, "rb")


def open_draft(path: Path) -> BinaryIO:
    """Create a file for writing; an existing file or link is removed, never written through."""
    path.unlink(missing_ok=True)
    return path.open("xb")
