"""The bounds of a gateway: each says what it protects, and what a client sees beyond it."""

import msgspec

from giaann_p2p.errors import UsageError


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a gateway accepts; the defaults suit a machine of a few gigabytes."""

    prompts: int = 256
    """Prompts that are answered at once. A further one gets 429 and may be sent again."""
    requests: int = 512
    """Requests that are served at once, without listeners to events. A further one gets 503."""
    listeners: int = 1024
    """Listeners to `/api/events` at once; each takes some 20 KB. A further one gets 503."""
    connections: int = 2048
    """Open connections, idle ones included. A further one is closed at once, without an answer."""
    tokens: int = 4096
    """Tokens of one answer. A request for more gets 400."""
    choices: int = 16
    """Answers of one request: its prompts times its `n`. A request for more gets 400."""
    body: int = 1 << 20
    """Bytes of a request's body. A longer one gets 413, as soon as that is known."""
    upload: int = 32 << 20
    """Bytes of a text to learn; a longer one gets 413. It is held in memory until it is learned."""
    uploads: int = 4
    """Texts to learn longer than `body` that are held at once. A further one gets 429."""
    head_seconds: float = 10.0
    """Seconds within which a request's head must have come, from its first byte or, for a new
    connection, from its start. After that the connection is closed."""
    body_seconds: float = 15.0
    """Seconds within which a body must have come, and one more for each 64 KiB of it; else 408."""
    write_seconds: float = 15.0
    """Seconds for which a client may read nothing of what is written to it; then it is dropped."""
    silence_seconds: float = 25.0
    """Seconds without a new token after which an answer fails, with 503 if nothing was sent."""
    request_seconds: float = 600.0
    """Seconds that a request may take in total, except for events and training."""
    drain_seconds: float = 10.0
    """Seconds that answers under way have to end after SIGTERM; what is left then is cut off."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if getattr(self, name) <= 0:
                raise UsageError(f"{name} must be more than 0; it is {getattr(self, name)}")
