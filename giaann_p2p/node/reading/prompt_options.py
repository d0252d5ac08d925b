"""Limits of what a compute peer spends on the prompts of other peers."""

import msgspec

from giaann_p2p.errors import UsageError


class PromptOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of a peer's prompt sessions. Seconds, unless another unit is named."""

    sessions: int = 64
    """Number of prompts answered at a time; a further one is refused as busy."""
    sessions_each: int = 32
    """Number of prompts of one peer answered at a time; a further one is refused as busy."""
    mind_bytes: int = 1 << 30
    """Bytes of memory for the state of all sessions. A session that takes a quarter of this memory
    ends; no session begins while all of it is taken."""
    cache_bytes: int = 1 << 28
    """Bytes of memory for the row cache. More: fewer rows are fetched again."""
    ahead: int = 32
    """Number of tokens that a session runs ahead of the requested ones. More: the asking peer waits
    less often; less: less work is wasted when it goes away."""
    wait: float = 0.3
    """Time for which a request waits for new tokens (long polling). Longer: fewer requests;
    shorter: the asking peer notices sooner that this peer has died."""
    idle: float = 10.0
    """Time after its last request at which a session expires."""
    prompt_chars: int = 1 << 14
    """Maximum length of a prompt, in characters; parsing takes about 50 ms for each thousand."""
    beam: int = 64
    """Upper bound of a beam's width times its depth: the number of rows for each token."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if getattr(self, name) <= 0:
                raise UsageError(
                    f"prompts: {name} must be more than 0; it is {getattr(self, name)}"
                )
