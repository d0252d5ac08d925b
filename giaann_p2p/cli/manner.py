"""Options of commands that generate answers, and their conversion to the library's settings."""

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from giaann_p2p.model.prompt import checked_prompt
from giaann_p2p.model.spec import MOST_COLUMN_SEGMENTS
from giaann_p2p.terminal import readable
from giaann_p2p.units import whole_number

if TYPE_CHECKING:
    from giaann_p2p import Beam, Sampling, Variant
    from giaann_p2p.model.manner import Manner


_MOST_BEAM = 1_000_000
"""Maximum width and depth of a beam; peers and gateways have smaller bounds of their own."""


class TimingName(StrEnum):
    """The values of `--timing`: how strictly memory must match a prompt."""

    AUTO = "auto"
    EXACT = "exact"
    SEQ = "seq"
    NONE = "none"
    BIASED = "biased"


class FeedName(StrEnum):
    """The values of `--feed`: the token that is fed after each prediction."""

    TRUE = "true"
    OWN = "own"


class Profile(StrEnum):
    """The values of `--profile`: how a model reads."""

    WORDS = "words"
    SUBWORDS = "subwords"


class ReadoutName(StrEnum):
    """The values of `--readout`: how a model of subwords chooses a token."""

    MIX = "mix"
    LIF_TRAIN = "lif-train"
    LIF_TEST = "lif-test"


ColumnSegments = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=MOST_COLUMN_SEGMENTS,
        metavar="N",
        help="A new model of subwords also learns connections by distance in columns, for N "
        "distances. They take most of the memory, and no prompt uses them. \\[default: 0]",
    ),
]
Text = Annotated[
    str, typer.Argument(metavar="TEXT", help="Text to continue; - reads standard input.")
]
MaxTokens = Annotated[int, typer.Option(min=1, help="Stop after this many tokens.")]
Timing = Annotated[
    TimingName,
    typer.Option(
        help="How strictly memory must match: exact (word for word), seq (in order), none, biased; "
        "auto takes the strictest that has an answer."
    ),
]
BeamSize = Annotated[
    str | None,
    typer.Option(
        metavar="WIDTHxDEPTH", help="Look ahead: 3x4 follows the 3 best continuations for 4 tokens."
    ),
]
Stream = Annotated[bool, typer.Option("--stream", help="Print each word as it comes.")]
Explain = Annotated[bool, typer.Option("--explain", help="Show why each token was chosen.")]
Feed = Annotated[
    FeedName,
    typer.Option(help="Token that is fed after each prediction: the true or the predicted one."),
]
SeedTokens = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="S", help="Tokens given of each sentence. \\[default: the model's]"
    ),
]
Readout = Annotated[
    ReadoutName | None,
    typer.Option(
        help="How a model of subwords chooses tokens: mix, or the reference's lif. \\[default: mix]"
    ),
]
Bits = Annotated[
    bool,
    typer.Option(
        "--bits",
        help="For a model of subwords: also measure bits per byte and perplexity (slower).",
    ),
]
GradedStrengths = Annotated[
    bool, typer.Option("--graded-strengths", help="Stronger connections pass on more activation.")
]
GradedActivations = Annotated[
    bool, typer.Option("--graded-activations", help="Segments add up the activation they receive.")
]
Device = Annotated[
    str,
    typer.Option(metavar="NAME", help="Torch device: auto (CUDA where there is one), cpu, cuda:0."),
]


Temperature = Annotated[
    float,
    typer.Option(
        min=0,
        max=100,
        metavar="T",
        help="Draw tokens by odds to the power of 1/T; 0 takes the best.",
    ),
]
TopK = Annotated[int, typer.Option(min=0, metavar="K", help="Draw from the K best tokens; 0: all.")]
TopP = Annotated[
    float,
    typer.Option(
        min=0, max=1, metavar="P", help="Draw from the best tokens, with this share of all odds."
    ),
]
SeedNumber = Annotated[
    int, typer.Option("--seed", min=0, metavar="N", help="The same seed gives the same answer.")
]
Penalty = Annotated[
    float,
    typer.Option(
        "--repetition-penalty",
        min=1,
        max=100,
        metavar="X",
        help="Divide the odds of recent tokens by X.",
    ),
]
Stop = Annotated[
    list[str] | None,
    typer.Option(
        "--stop", metavar="TEXT", help="End the answer before this text; may be repeated."
    ),
]
Answers = Annotated[
    int,
    typer.Option(
        "--n", min=1, max=100, metavar="N", help="Number of answers; each one takes the next seed."
    ),
]


def text_of(text: str) -> str:
    """Return the prompt, read from standard input if the argument is -; PromptError if empty."""
    found = sys.stdin.buffer.read().decode(errors="replace").strip() if text == "-" else text
    return checked_prompt(readable(found))


def variant_of(strengths: bool, activations: bool) -> "Variant":
    """Return the model variant for --graded-strengths and --graded-activations."""
    from giaann_p2p import Variant

    return Variant(graded_strengths=strengths, graded_activations=activations)


def beam_of(text: str | None) -> "Beam | None":
    """Parse the value of --beam, WIDTHxDEPTH; None without the option."""
    if text is None:
        return None
    from giaann_p2p import Beam

    width, depth = (whole_number(part, _MOST_BEAM) for part in text.partition("x")[::2])
    if not (width and depth):
        raise typer.BadParameter(
            f"{text[:40]!r} is not WIDTHxDEPTH, such as 3x4", param_hint="--beam"
        )
    return Beam(width=width, depth=depth)


def samplings_of(
    temperature: float,
    top_k: int,
    top_p: float,
    seed: int,
    penalty: float,
    stop: list[str] | None,
    answers: int,
) -> "list[Sampling]":
    """Return the library's sampling settings for each answer."""
    from giaann_p2p import Sampling

    if not top_p:
        raise typer.BadParameter("it must be above 0", param_hint="--top-p")
    if answers > 1 and not temperature:
        raise typer.BadParameter(
            "without a temperature all answers are the same: give --temperature 1",
            param_hint="--n",
        )
    first = Sampling(
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
        repetition_penalty=penalty,
        stop=tuple(map(readable, stop or ())),
    )
    return first.each(answers)


def manner_of(
    max_tokens: int,
    timing: str,
    beam: str | None,
    strengths: bool,
    activations: bool,
    sampling: "Sampling | None" = None,
) -> "Manner":
    """Return the library's settings for the options of a command that answers prompts."""
    from giaann_p2p.model.manner import Manner, Sampling

    return Manner(
        max_tokens=max_tokens,
        timing=timing,
        beam=beam_of(beam),
        variant=variant_of(strengths, activations),
        sampling=sampling or Sampling(),
    )
