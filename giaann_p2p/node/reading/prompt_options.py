"""Limits of what a compute peer spends on the prompts of other peers."""

import msgspec

from giaann_p2p.errors import UsageError
from giaann_p2p.model.manner import MOST_BEAM, MOST_PROMPT


class PromptOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of the sessions in which a compute peer answers prompts; times are in seconds."""

    sessions: int = 64
    """Maximum number of prompts answered at a time; a further one is refused as busy."""
    sessions_each: int = 32
    """Maximum number of one peer's prompts answered at a time; a further one is refused as busy."""
    mind_bytes: int = 1 << 30
    """Bytes of memory for the state of all prompt sessions. A session that takes more than a
    quarter of this memory ends; no session begins while all of it is taken."""
    cache_bytes: int = 1 << 28
    """Bytes of memory for the row cache. More: fewer rows are fetched again."""
    ahead: int = 32
    """Number of tokens that a session runs ahead of the requested ones. More: the asking peer waits
    less often; less: less work is wasted when that peer goes away."""
    wait: float = 0.3
    """Seconds for which a request waits for new tokens (long polling). Longer: fewer requests;
    shorter: the asking peer notices sooner that this peer has died."""
    gather: float = 0.01
    """Seconds for which an answer waits for further tokens, once its first ones were delivered.
    Longer: fewer messages, which cost more than the tokens; shorter: tokens come more evenly."""
    idle: float = 10.0
    """Seconds without a request after which a prompt session expires."""
    prompt_chars: int = MOST_PROMPT
    """Maximum length of a prompt, in characters; parsing takes about 50 ms for each thousand."""
    beam: int = MOST_BEAM
    """Maximum width times depth of a beam search: the number of rows read for each token."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if getattr(self, name) <= 0:
                raise UsageError(
                    f"prompts: {name} must be more than 0; it is {getattr(self, name)}"
                )
