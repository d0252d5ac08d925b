"""Checks a prompt before anything slow is loaded or requested."""

from giaann_p2p.errors import PromptError


def checked_prompt(prompt: str) -> str:
    """Return the prompt; TypeError if it is not a str, PromptError if it is empty."""
    if not isinstance(prompt, str):
        raise TypeError(f"a prompt is a str, not {type(prompt).__name__}")
    if not prompt.strip():
        raise PromptError("the prompt is empty: give it some words to go on with")
    return prompt
