"""Errors a caller can act on: each message says what is wrong, and what to do about it.

Every error that the library raises on purpose derives from `GiaannError`. A `UsageError` means that
the caller's input or files are at fault, a `PeerError` that another peer is at fault.
"""

from typing import ClassVar

from giaann_p2p.exit_codes import FAILED, WRONG_USAGE


class GiaannError(Exception):
    """The base of all errors that giaann_p2p raises on purpose."""

    exit_code: ClassVar[int] = FAILED
    """The exit code of a command that ends with this error."""


class UsageError(GiaannError):
    """The caller is at fault: wrong argument, wrong file, wrong order of calls."""

    exit_code = WRONG_USAGE


class SpecError(UsageError):
    """A model spec breaks a rule, or two specs do not fit together."""


class PipelineError(UsageError):
    """The English pipeline is missing, or is not the one that the spec names."""

    exit_code = FAILED  # the installation is at fault, not the arguments


class TextError(UsageError):
    """A text cannot be read as text; the message names file and line."""


class DatabaseError(UsageError):
    """A GIAANNpy database is unsafe, damaged or made with other settings; the message names it."""

    exit_code = FAILED  # the database is at fault, not the arguments


class PromptError(UsageError):
    """The model cannot start from this prompt."""


class TokenError(UsageError):
    """A member's token is forged, expired or revoked, or does not allow the attempted action."""


class EditionError(UsageError):
    """An edition of a swarm's rules is forged or malformed, or reverts an earlier change."""


class EditionDelayed(EditionError):  # noqa: N818  (what it is, not what went wrong)
    """A valid edition cannot be adopted just now; send it again later."""


class NotAdmitted(TokenError):  # noqa: N818  (what it is, not what went wrong)
    """The swarm does not admit this peer in the role that it asks for; the token may be valid."""

    exit_code = FAILED


class DeviceError(UsageError):
    """This machine does not have the requested torch device."""


class StoreError(GiaannError):
    """A store cannot do what was asked: it is missing, in use, full, damaged or on a bad disk."""


class NoStore(StoreError, UsageError):  # noqa: N818  (what it is, not what went wrong)
    """There is no store in the given folder."""

    exit_code = WRONG_USAGE


class StoreFull(StoreError):  # noqa: N818  (what it is, not what went wrong)
    """A write would take more memory than the store may use; reads still work."""

    def __init__(self, words: str, more: int = 0) -> None:
        super().__init__(words)
        self.more = more
        """The number of bytes that the write needs."""


class DiskError(StoreError):
    """The disk failed or is full; the write was not acknowledged, and reads still work."""


class DamagedError(StoreError):
    """A file's content is not what was written; the message names the file and the offset."""


class PeerError(GiaannError):
    """Another peer is at fault: it sent something invalid."""


class MessageError(PeerError):
    """A message is invalid: truncated, altered in transit, too long, or of another version."""


class RecordError(PeerError):
    """A peer's record is forged, stale, too long-lived, too large, or of another peer or swarm."""


class NobodyComputes(PeerError):  # noqa: N818  (what it is, not what went wrong)
    """There is no compute peer; a client can compute by itself."""


class WorkerError(GiaannError):
    """A process that worked for this process has died."""
