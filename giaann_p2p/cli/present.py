"""Renders the results of commands: lines for people, plain values for JSON."""

from typing import TYPE_CHECKING, Any, cast

from giaann_p2p.client.plain import cost_json, share_of, token_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from giaann_p2p import (
        Checked,
        Generation,
        Info,
        Job,
        Recalled,
        Score,
        Token,
        Trained,
    )
    from giaann_p2p.client.prompting import Answer
    from giaann_p2p.client.trained import TrainProgress, TrainReport
    from giaann_p2p.model.subwords.evaluate import TokenScore
    from giaann_p2p.model.subwords.said import SubwordToken
    from giaann_p2p.sim.run import Outcome
    from giaann_p2p.sim.seeds import Played, Size, Summary
    from giaann_p2p.swarm.wire.prompt_messages import Cost

_MOST_TOLD = 5
"""Maximum number of chunks given up that are printed with their reasons."""
_CLEANED = "control characters"
"""The value of `Reason.CLEANED`, copied so that the parser need not be loaded."""
_CROPPED = "cropped"
"""The value of `Reason.CROPPED`, for the same reason."""
NOTHING_TO_LEARN = "a sentence to learn needs a noun, and more tokens than the model's seed"


def trained_line(report: "Trained") -> str:
    """Return a line that says how much of a text was learned, and what was skipped."""
    if report.known:
        chunks = f"{report.chunks_known:,} chunk{'s'[: report.chunks_known != 1]}"
        return f"{report.name}: known already ({chunks}); --epochs learns it again"
    lines = report.skips.first_lines
    told: dict[str, str] = {
        reason: f"{count:,} {reason} (first on line {lines[reason]})"
        for reason, count in sorted(report.skips.counts.items(), key=lambda one: lines[one[0]])
    }
    cleaned, cropped = told.pop(_CLEANED, None), told.pop(_CROPPED, None)
    skips = ", ".join(told.values())
    rate = f"; {report.sentences / report.seconds:,.0f} {report.unit}/s" if report.seconds else ""
    return (
        f"{report.name}: learned {report.sequences:,} of {report.sentences:,} {report.unit}"
        + (f", skipped {skips}" if skips else "")
        + (f", read as spaces: {cleaned}" if cleaned else "")
        + (f", only begun: {cropped}" if cropped else "")
        + rate
        + (" (interrupted)" if report.interrupted else "")
        + ("" if report.sequences or report.interrupted else f"; {NOTHING_TO_LEARN}")
    )


def standing_line(report: "TrainReport", standing: "TrainProgress") -> str:
    """Return a line about how much of a text a swarm has learned so far."""
    if standing.lacking:
        return f"waiting for {standing.lacking}"
    of = "" if standing.chunks is None else f" of {standing.chunks:,}"
    peers = f"{standing.peers} peer{'' if standing.peers == 1 else 's'} at work"
    pushed = f"{report.pushed / 1e6:,.1f} MB pushed"
    rate = f"{standing.rate:,.0f} {report.unit}/s"
    return f"{standing.committed:,}{of} chunks, {rate}, {peers}, {pushed}"


def taught_line(report: "TrainReport") -> str:
    """Return a line that says how much of a text a swarm learned, in one epoch."""
    line = trained_line(report)
    if report.epoch > 1:
        line = line.replace(": ", f", epoch {report.epoch}: ", 1)
    if report.checked:
        line = f"{line}, {report.checked:,} chunk{'s'[: report.checked != 1]} cross-checked"
    return f"{line}, {report.pushed / 1e6:,.1f} MB pushed" if report.chunks else line


def liar_lines(report: "TrainReport") -> "Iterator[str]":
    """Yield a line for each compute peer that got no more work, because others contradicted it."""
    for peer in sorted(report.liars):
        yield (
            f"{report.name}: the result of peer {peer} differs from that of others, so it gets no "
            "more work on this text: its machine or its version is faulty, or it lies"
        )


def unbrought_lines(report: "TrainReport") -> "Iterator[str]":
    """Yield a line for each compute peer that got no more work, because no owner has its chunks."""
    for peer, count in sorted(report.unbrought.items()):
        chunks = "a chunk" if count == 1 else f"{count:,} chunks"
        yield (
            f"{report.name}: no owner has {chunks} that peer {peer} reported as pushed; others "
            "learn that again, and it gets no more work on this text: either it lies, or the "
            "owners have lost what it pushed"
        )


def given_up_lines(report: "TrainReport") -> "Iterator[str]":
    """Yield a line for each chunk that could not be learned, 5 at most, with the reasons."""
    for told in list(report.given_up.values())[:_MOST_TOLD]:
        reasons = "; ".join(dict.fromkeys(told.reasons))
        yield f"{report.name}:{told.line}: up to 64 {report.unit} could not be learned: {reasons}"
    if (more := len(report.given_up) - _MOST_TOLD) > 0:
        yield f"{report.name}: and {more:,} more chunks of up to 64 {report.unit}"
    if report.given_up:
        yield "run the same command again to retry them"


def generation_json(answer: "Generation") -> dict[str, Any]:
    """Return an answer with its tokens as plain values, for JSON."""
    return {
        "prompt": answer.prompt,
        "text": answer.text,
        "completion": answer.completion,
        "unknown": answer.unknown,
        "tokens": [token_json(token) for token in answer.tokens],
        "stopped": answer.stopped,
    }


def token_line(token: "Token | SubwordToken") -> str:
    """Return a line with a token's word, timing, score, number of candidates and neuron."""
    share = share_of(token)
    sure = "" if share is None else f"p {share:5.3f}  "
    return (
        f"  {token.word:<24} {token.timing:<6} score {token.score:7.3f}  {sure}"
        f"of {token.candidates:>4} candidates  {token.name.concept}/{token.name.feature or '*'}"
    )


def explained_lines(answer: "Generation") -> list[str]:
    """Return a line for each token, and one for words of the prompt that were never learned."""
    unknown = [f"  never learned: {', '.join(answer.unknown)}"] if answer.unknown else []
    return [*map(token_line, answer.tokens), *unknown]


def nothing_line(answer: "Generation", timing: str, stop: "Sequence[str] | None" = None) -> str:
    """Return a line that says that there is no answer, with the prompt's unknown words."""
    unknown = f"; never learned: {', '.join(answer.unknown)}" if answer.unknown else ""
    is_stopped = stop and answer.stopped == "end" and not answer.tokens
    why = ": a stop text ended it at once" if is_stopped else f" (timing {timing})"
    return f"the answer is empty{why}{unknown}"


def stats_json(answer: "Answer") -> dict[str, Any]:
    """Return the costs of a prompt and of each token of its answer as plain values, for JSON."""
    begun = None if answer.begun is None else cost_json(answer.begun)
    return {"begun": begun, "costs": list(map(cost_json, answer.costs))}


def cost_line(what: str, how: str, cost: "Cost") -> str:
    """Return a line with the cost of a token, or of a prompt: time, rows, round trips, bytes."""
    return (
        f"  {what:<24} {how:<6} {cost.micros / 1000:8.2f} ms, {cost.waited / 1000:8.2f} waiting;  "
        f"{cost.kept:>4} of {cost.rows:>4} rows at hand, {cost.trips:>3} round trips, "
        f"{cost.nbytes:>9,} bytes"
    )


def costs_lines(
    tokens: "Sequence[Token | SubwordToken]", begun: "Cost", costs: "Sequence[Cost]"
) -> list[str]:
    """Return lines with the costs of a prompt and of each token, and the mean cost of a token."""
    lines = [cost_line("(the prompt)", "", begun)]
    lines += [
        cost_line(token.word, token.timing, cost) for token, cost in zip(tokens, costs, strict=True)
    ]
    if not costs:
        return lines
    count = len(costs)
    ms, trips = sum(cost.micros for cost in costs) / 1000, sum(cost.trips for cost in costs)
    rows, kept = sum(cost.rows for cost in costs), sum(cost.kept for cost in costs)
    nbytes = sum(cost.nbytes for cost in costs)
    lines.append(
        f"a token: {ms / count:.2f} ms, {trips / count:.2f} round trips, {nbytes / count:,.0f}"
        f" bytes; {kept:,} of {rows:,} rows at hand"
    )
    return lines


def score_line(score: "Score") -> str:
    """Return a line with the accuracy and the counts of an evaluation.

    For a model of subwords with `mix`, a second line says what the choices rest on.
    """
    tokens = f"{score.right_words:,} of {score.predicted:,} tokens right"
    others = f"{score.silent:,} without a candidate, {score.unreached:,} unreached"
    left_out = _left_out(score.too_short, "the seed", score.skipped)
    subwords = _of_subwords(score)
    unit = "texts" if subwords else "sentences"
    where = f"{score.sentences:,} {unit}{left_out}; {score.tokens_per_second:,.0f} tokens/s"
    line = f"accuracy {score.accuracy:.4f} ({tokens}, {others}) on {where}"
    return line + _by_mix(subwords) if subwords and subwords.columns == "causal" else line


def _of_subwords(score: "Score") -> "TokenScore | None":
    """Return the score if it is of a model of subwords, else None; load no code of subwords."""
    return cast("TokenScore", score) if hasattr(score, "columns") else None


def _by_mix(score: "TokenScore") -> str:
    """Return the measures that only `mix` has, and a line that says what its choices rest on."""
    shares = f"; with columns given {score.accuracy_given:.4f}, strict {score.accuracy_strict:.4f}"
    shares += f", among the best five {score.accuracy_top5:.4f}"
    shares += f" (given {score.accuracy_top5_given:.4f}, strict {score.accuracy_top5_strict:.4f})"
    if score.bits_per_byte is not None:
        shares += f"; {score.bits_per_byte:.3f} bits per byte"
        shares += (
            f" (given {score.bits_per_byte_given:.3f}, strict {score.bits_per_byte_strict:.3f})"
        )
        shares += f", perplexity {score.perplexity:,.1f}"
        shares += f" (given {score.perplexity_given:,.1f}, strict {score.perplexity_strict:,.1f})"
    tiers = (
        f"{basis} {tier.choices:,} ({tier.right / tier.choices:.4f} right)"
        for basis, tier in score.tiers.items()
        if tier.choices
    )
    return f"{shares}\nchoices rest on: {', '.join(tiers)}"


def _left_out(too_short: int, given: str, skipped: int) -> str:
    """Return a phrase that says how many sentences were left out, and why; empty if none were."""
    why = []
    if too_short:
        why.append(f"{too_short:,} with nothing after {given}")
    if skipped:
        why.append(f"{skipped:,} that training skips")
    return f"; left out: {' and '.join(why)}" if why else ""


def score_json(score: "Score") -> dict[str, Any]:
    """Return the counts, accuracies and rate of an evaluation as plain values, for JSON."""
    found = {
        **vars(score),
        "accuracy": score.accuracy,
        "neuron_accuracy": score.neuron_accuracy,
        "tokens_per_second": score.tokens_per_second,
    }
    if subwords := _of_subwords(score):
        found["tiers"] = {str(basis): vars(tier) for basis, tier in subwords.tiers.items()}
        by_mix = subwords.columns == "causal"
        found |= {
            "accuracy_given": subwords.accuracy_given,
            "accuracy_strict": subwords.accuracy_strict if by_mix else None,
            "accuracy_top5": subwords.accuracy_top5 if by_mix else None,
            "accuracy_top5_given": subwords.accuracy_top5_given if by_mix else None,
            "accuracy_top5_strict": subwords.accuracy_top5_strict if by_mix else None,
            "bits_per_byte": subwords.bits_per_byte,
            "bits_per_byte_given": subwords.bits_per_byte_given,
            "bits_per_byte_strict": subwords.bits_per_byte_strict,
            "perplexity": subwords.perplexity,
            "perplexity_given": subwords.perplexity_given,
            "perplexity_strict": subwords.perplexity_strict,
        }
    return found


def recalled_lines(result: "Recalled", with_missed: bool) -> str:
    """Return a line on how many texts were recalled, and the missed ones if wanted."""
    line = f"recalled {result.share:.4f} ({result.recalled:,} of {result.sentences:,} {result.unit}"
    line += _left_out(result.too_short, "the words given", result.skipped) + ")"
    if not with_missed:
        return line
    missed = (
        f"  {begun} ...\n    true:{rest}\n    said:{said}" for begun, rest, said in result.missed
    )
    return "\n".join([line, *missed])


def recalled_json(result: "Recalled") -> dict[str, Any]:
    """Return the result of a recall, with the missed texts, as plain values, for JSON."""
    missed = [{"prompt": begun, "rest": rest, "said": said} for begun, rest, said in result.missed]
    counts = {"sentences": result.sentences, "recalled": result.recalled, "share": result.share}
    others = {"too_short": result.too_short, "skipped": result.skipped}
    return {**counts, **others, "missed": missed}


def checked_lines(checked: "Checked") -> list[str]:
    """Return lines with the problems of a checked brain, or with its digest if it has none."""
    size = f"{checked.nbytes:,} bytes in {checked.files:,} files"
    if checked.problems:
        count = len(checked.problems)
        return [*checked.problems, f"{count} problem{'' if count == 1 else 's'}; {size}"]
    return [f"all is well: {size}", f"digest {checked.digest}"]


def info_lines(info: "Info", where: str) -> str:
    """Return lines on a brain's size, digest, model and texts."""
    from giaann_p2p.model.traits import traits_of  # imports numpy

    spec = info.spec
    return "\n".join(
        [
            f"brain      {where} ({info.file_bytes:,} bytes)",
            f"knows      {info.columns:,} columns, {info.neurons:,} neurons, {info.words:,} words",
            f"           {info.connections:,} connections from {info.occurrences:,} tokens",
            f"digest     {info.digest}",
            f"model      S={spec.seed_tokens}, {spec.column_segments} column and "
            f"{spec.feature_segments} feature segments, {spec.branches} branches",
            f"           pipeline {spec.pipeline}, {traits_of(spec.profile).reads_with(spec)}",
            *map(_text_line, info.texts),
        ]
    )


def _text_line(job: "Job") -> str:
    epoch = f", epoch {job.epoch}" if job.epoch > 1 else ""
    unfinished = "" if job.complete or job.foreign else ", unfinished"
    return f"text       {job.name} ({job.chunks:,} chunks{epoch}{unfinished})"


def failed_lines(outcome: "Outcome", replay: str) -> str:
    """Return lines with the problems of a simulated history, and the command that replays it."""
    return "\n".join(
        [
            f"seed {outcome.seed} failed at {outcome.settled:,.0f} s:",
            *(f"  {problem}" for problem in outcome.problems),
            f"  to replay it: {replay}",
        ]
    )


def replay_command(seed: int, size: "Size") -> str:
    """Return the command that replays a simulated history and prints its trace."""
    usual = type(size)()
    others = [
        f"--{name}" if value is True else f"--{name} {_option(value)}"
        for name, value in size._asdict().items()
        if value != getattr(usual, name)
    ]
    return " ".join([f"giaann sim --seed {seed}", *others, "--trace"])


def _option(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def summary_lines(summary: "Summary") -> str:
    """Return lines with the totals of many simulated histories."""
    hours, times = summary.virtual_seconds / 3600, summary.virtual_seconds / summary.seconds
    failed = ", ".join(map(str, summary.failed))
    slowest = f"seed {summary.slowest}: all was well {summary.settled_after:,.0f} s after"
    return "\n".join(
        [
            f"seeds      {summary.seeds:,}",
            f"passed     {summary.seeds - len(summary.failed):,}",
            *([f"failed     {failed}"] if failed else []),
            f"time       {hours:,.2f} virtual hours in {summary.seconds:,.1f} s, "
            f"{times:,.0f} times as fast",
            f"network    {summary.bytes:,} bytes",
            f"learned    {summary.committed:,} chunks committed",
            f"reads      {summary.answered:,} answered, {summary.unanswered:,} not in time",
            *([] if summary.slowest is None else [f"slowest    {slowest} the last fault"]),
            *(f"hostile    {count:,} {what}" for what, count in sorted(summary.counts.items())),
        ]
    )


def summary_json(summary: "Summary", played: "list[Played]", with_trace: bool) -> dict[str, Any]:
    """Return the totals of simulated histories, and each outcome, as plain values, for JSON."""
    outcomes = []
    for outcome, seconds in played:
        told = outcome._asdict()
        if not with_trace:
            del told["trace"]
        outcomes.append({**told, "seconds": round(seconds, 3)})
    return {**summary._asdict(), "outcomes": outcomes}
