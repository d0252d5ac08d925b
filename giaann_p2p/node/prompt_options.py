"""What a compute peer spends on the prompts of others."""

import msgspec

from giaann_p2p.errors import UsageError


class PromptOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a peer spends on the prompts of others. Seconds, unless something else is said."""

    sessions: int = 64
    """Prompts that are answered at a time; a further one is refused as busy."""
    sessions_each: int = 32
    """The same, of one peer's."""
    mind_bytes: int = 1 << 30
    """Memory for what all of them have touched. One that takes a quarter alone ends; from all of it
    on no new one begins."""
    cache_bytes: int = 1 << 28
    """Memory for rows that were read. More: fewer are read anew."""
    ahead: int = 32
    """Tokens that a session runs ahead of those that were asked for. More: whoever asks waits less
    often; less: less is done for those who go away."""
    wait: float = 0.3
    """How long a question waits for news. Longer: fewer questions; shorter: a peer's death is
    noticed sooner by whoever asks."""
    idle: float = 10.0
    """How long after the last question a session ends."""
    prompt_chars: int = 1 << 14
    """Characters of a prompt. It takes some 50 ms for each thousand."""
    beam: int = 64
    """The most that a beam's width times its depth may come to: so many rows a token."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if getattr(self, name) <= 0:
                raise UsageError(
                    f"prompts: {name} must be more than 0; it is {getattr(self, name)}"
                )
