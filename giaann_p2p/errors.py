"""Errors a caller can act on: each message says what is wrong and what to do about it.

Everything the library raises on purpose derives from `GiaannError`. `UsageError` means that the
caller's input or files are at fault, a `PeerError` that another peer is.
"""


class GiaannError(Exception):
    """Anything that giaann_p2p raises on purpose."""


class UsageError(GiaannError):
    """The caller's fault: wrong argument, wrong file, wrong order of calls."""


class SpecError(UsageError):
    """A model spec that breaks a rule, or two specs that do not fit together."""


class PipelineError(UsageError):
    """The English pipeline is missing, or is not the one that the spec names."""


class TextError(UsageError):
    """A text that cannot be read as text; the message names file and line."""


class PromptError(UsageError):
    """A prompt that the model cannot start from."""


class TokenError(UsageError):
    """A member's token that is forged, run out, revoked, or does not allow what was tried."""


class DeviceError(UsageError):
    """A torch device that this machine does not have."""


class StoreError(GiaannError):
    """A store that cannot do what was asked: missing, in use, full, damaged, on a broken disk."""


class StoreFull(StoreError):  # noqa: N818  (what it is, not what went wrong)
    """A write that would take more memory than the store may use; reads go on."""


class DiskError(StoreError):
    """The disk failed or is full; nothing of the write was acknowledged, and reads go on."""


class DamagedError(StoreError):
    """A file that is not what was written; the message names it and the offset."""


class PeerError(GiaannError):
    """The other peer's fault: what it sent cannot be what it should."""


class MessageError(PeerError):
    """Bytes that are no message: cut off, changed on the way, too long, of another version."""


class RecordError(PeerError):
    """An announcement that is forged, stale, too long-lived, too large or somebody else's."""


class NobodyComputes(PeerError):  # noqa: N818  (what it is, not what went wrong)
    """No compute peer is there; a client can compute by itself."""


class WorkerError(GiaannError):
    """A process that worked for this one has died."""
