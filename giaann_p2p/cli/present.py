"""How results look: a line for people, plain values for JSON."""

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from giaann_p2p import Checked, Generation, Info, Job, Recalled, Score, Token, Trained
    from giaann_p2p.client.prompting import Answer
    from giaann_p2p.client.trained import Standing, Taught
    from giaann_p2p.sim.run import Outcome
    from giaann_p2p.sim.seeds import Played, Size, Summary
    from giaann_p2p.swarm.messages import Cost

_MOST_TOLD = 5
_ORDERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
NOTHING_TO_LEARN = "a sentence to learn needs a noun, and more tokens than the model's seed"


def trained_line(report: "Trained") -> str:
    """Tell what came of learning a text."""
    if report.known:
        chunks = f"{report.chunks_known:,} chunks"
        return f"{report.name}: known already ({chunks}); --epochs learns it again"
    skips = ", ".join(
        f"{count:,} {reason} (first on line {report.skips.first_lines[reason]})"
        for reason, count in sorted(
            report.skips.counts.items(), key=lambda one: report.skips.first_lines[one[0]]
        )
    )
    rate = report.sentences / report.seconds if report.seconds else 0.0
    return (
        f"{report.name}: learned {report.sequences:,} of {report.sentences:,} sentences"
        + (f", skipped {skips}" if skips else "")
        + f"; {rate:,.0f} sentences/s"
        + (" (interrupted)" if report.interrupted else "")
        + ("" if report.sequences or report.interrupted else f"; {NOTHING_TO_LEARN}")
    )


def trained_json(report: "Trained") -> dict[str, Any]:
    """Return all counts."""
    skips = {
        reason.value: {"count": count, "first_line": report.skips.first_lines[reason]}
        for reason, count in report.skips.counts.items()
    }
    return {**vars(report), "known": report.known, "skips": skips}


def standing_line(report: "Taught", standing: "Standing") -> str:
    """Tell how far a text is that a swarm learns."""
    if standing.lacking:
        return f"waiting for {standing.lacking}"
    of = "" if standing.chunks is None else f" of {standing.chunks:,}"
    peers = f"{standing.peers} peer{'' if standing.peers == 1 else 's'} at work"
    pushed = f"{report.pushed / 1e6:,.1f} MB pushed"
    rate = f"{standing.rate:,.0f} sentences/s"
    return f"{standing.committed:,}{of} chunks, {rate}, {peers}, {pushed}"


def taught_line(report: "Taught") -> str:
    """Tell what came of a text that a swarm was to learn."""
    line = trained_line(report)
    if report.epoch > 1:
        line = line.replace(": ", f", epoch {report.epoch}: ", 1)
    if report.checked:
        line = f"{line}, {report.checked:,} of the chunks by two peers or more"
    return f"{line}, {report.pushed / 1e6:,.1f} MB pushed" if report.chunks else line


def taught_json(report: "Taught") -> dict[str, Any]:
    """Return all counts."""
    given_up = {
        str(chunk): {"line": told.line, "reasons": list(told.reasons)}
        for chunk, told in report.given_up.items()
    }
    return {
        **trained_json(report),
        "checked": report.checked,
        "liars": sorted(report.liars),
        "unbrought": report.unbrought,
        "given_up": given_up,
        "complete": report.complete,
    }


def liar_lines(report: "Taught") -> "Iterator[str]":
    """Tell who was sent away."""
    for peer in sorted(report.liars):
        yield (
            f"{report.name}: what peer {peer} came to is not what others came to; it learns "
            "nothing more of this: its machine or its version is faulty, or it lies"
        )


def unbrought_lines(report: "Taught") -> "Iterator[str]":
    """Tell who was sent away because what it said it brought is nowhere."""
    for peer, count in sorted(report.unbrought.items()):
        chunks = "a chunk" if count == 1 else f"{count:,} chunks"
        yield (
            f"{report.name}: no owner knows of {chunks} that peer {peer} says it has brought to "
            "them; others learn that again, and it learns nothing more of this: it lies, or the "
            "owners have lost what they had"
        )


def given_up_lines(report: "Taught") -> "Iterator[str]":
    """Tell what could not be learned, and why."""
    for told in list(report.given_up.values())[:_MOST_TOLD]:
        reasons = "; ".join(dict.fromkeys(told.reasons))
        yield f"{report.name}:{told.line}: 64 sentences could not be learned: {reasons}"
    if (more := len(report.given_up) - _MOST_TOLD) > 0:
        yield f"{report.name}: and {more:,} times 64 more"
    if report.given_up:
        yield "the same command tries them again"


def generation_json(answer: "Generation") -> dict[str, Any]:
    """Return the answer with what speaks for each token."""
    return {
        "prompt": answer.prompt,
        "text": answer.text,
        "completion": answer.completion,
        "unknown": answer.unknown,
        "tokens": [token_json(token) for token in answer.tokens],
        "stopped": answer.stopped,
    }


def token_json(token: "Token") -> dict[str, Any]:
    """Return a token with what speaks for it."""
    return {
        "text": token.text,
        "word": token.word,
        "concept": token.name.concept,
        "feature": token.name.feature,
        "timing": token.timing,
        "score": round(token.score, 6),
        "candidates": token.candidates,
    }


def token_line(token: "Token") -> str:
    """Tell what speaks for a token."""
    return (
        f"  {token.word:<24} {token.timing:<6} score {token.score:7.3f}  "
        f"of {token.candidates:>4} candidates  {token.name.concept}/{token.name.feature or '*'}"
    )


def nothing_line(answer: "Generation", timing: str) -> str:
    """Tell that an answer is empty, and what may be why."""
    unknown = f"; new to it: {', '.join(answer.unknown)}" if answer.unknown else ""
    return f"nothing comes to mind (timing {timing}){unknown}"


def cost_json(cost: "Cost") -> dict[str, Any]:
    """Return what a token took."""
    return {
        "ms": cost.micros / 1000,
        "waited_ms": cost.waited / 1000,
        "rows": cost.rows,
        "at_hand": cost.kept,
        "round_trips": cost.trips,
        "bytes": cost.nbytes,
    }


def stats_json(answer: "Answer") -> dict[str, Any]:
    """Return what an answer took, the prompt and each token."""
    begun = None if answer.begun is None else cost_json(answer.begun)
    return {"begun": begun, "costs": list(map(cost_json, answer.costs))}


def shown(text: str) -> str:
    """Return a text of others without what a terminal would take for orders."""
    return _ORDERS.sub("\ufffd", text)


def cost_line(what: str, how: str, cost: "Cost") -> str:
    """Tell what a token took."""
    return (
        f"  {what:<24} {how:<6} {cost.micros / 1000:8.2f} ms, {cost.waited / 1000:8.2f} waiting;  "
        f"{cost.kept:>4} of {cost.rows:>4} rows at hand, {cost.trips:>3} round trips, "
        f"{cost.nbytes:>9,} bytes"
    )


def costs_lines(tokens: "Sequence[Token]", begun: "Cost", costs: "Sequence[Cost]") -> list[str]:
    """Tell what a prompt and each of its tokens took, and what that comes to for a token."""
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
    """Tell how much was right."""
    tokens = f"{score.right_words:,} of {score.predicted:,} tokens right"
    others = f"{score.silent:,} without a candidate, {score.unreached:,} unreached"
    where = f"{score.sentences:,} sentences; {score.tokens_per_second:,.0f} tokens/s"
    return f"accuracy {score.accuracy:.4f} ({tokens}, {others}) on {where}"


def score_json(score: "Score") -> dict[str, Any]:
    """Return the counts and what follows from them."""
    return {
        **vars(score),
        "accuracy": score.accuracy,
        "neuron_accuracy": score.neuron_accuracy,
        "tokens_per_second": score.tokens_per_second,
    }


def recalled_lines(result: "Recalled", with_missed: bool) -> str:
    """Tell how many sentences were recalled."""
    line = f"recalled {result.share:.4f} ({result.recalled:,} of {result.sentences:,} sentences)"
    if not with_missed:
        return line
    missed = (
        f"  {begun} ...\n    true:{rest}\n    said:{said}" for begun, rest, said in result.missed
    )
    return "\n".join([line, *missed])


def recalled_json(result: "Recalled") -> dict[str, Any]:
    """Return the counts, and the sentences that were missed."""
    missed = [{"prompt": begun, "rest": rest, "said": said} for begun, rest, said in result.missed]
    counts = {"sentences": result.sentences, "recalled": result.recalled, "share": result.share}
    return {**counts, "missed": missed}


def checked_lines(checked: "Checked") -> list[str]:
    """Tell what is wrong, or that nothing is."""
    size = f"{checked.nbytes:,} bytes in {checked.files:,} files"
    if checked.problems:
        count = len(checked.problems)
        return [*checked.problems, f"{count} problem{'' if count == 1 else 's'}; {size}"]
    return [f"all is well: {size}", f"digest {checked.digest}"]


def info_lines(info: "Info", where: str) -> str:
    """Tell what a brain holds."""
    spec = info.spec
    return "\n".join(
        [
            f"brain      {where} ({info.file_bytes:,} bytes)",
            f"knows      {info.columns:,} columns, {info.neurons:,} neurons, {info.words:,} words",
            f"           {info.connections:,} connections from {info.occurrences:,} tokens",
            f"digest     {info.digest}",
            f"model      S={spec.seed_tokens}, {spec.column_segments} column and "
            f"{spec.feature_segments} feature segments, {spec.branches} branches",
            f"           pipeline {spec.pipeline}, lexicon {spec.lexicon}",
            *map(_text_line, info.texts),
        ]
    )


def _text_line(job: "Job") -> str:
    epoch = f", epoch {job.epoch}" if job.epoch > 1 else ""
    unfinished = "" if job.complete else ", unfinished"
    return f"text       {job.name} ({job.chunks:,} chunks{epoch}{unfinished})"


def failed_lines(outcome: "Outcome", replay: str) -> str:
    """Tell what is wrong with a history, and how to see it again."""
    return "\n".join(
        [
            f"seed {outcome.seed} failed at {outcome.settled:,.0f} s:",
            *(f"  {problem}" for problem in outcome.problems),
            f"  to see it again: {replay}",
        ]
    )


def replay_command(seed: int, size: "Size") -> str:
    """Return the command that lets a history happen again, and tells all of it."""
    usual = type(size)()
    others = [
        f"--{name} {value:g}"
        for name, value in size._asdict().items()
        if value != getattr(usual, name)
    ]
    return " ".join([f"giaann sim --seed {seed}", *others, "--trace"])


def summary_lines(summary: "Summary") -> str:
    """Tell what many histories came to."""
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
    """Return the sums, and what came of each seed."""
    outcomes = []
    for outcome, seconds in played:
        told = outcome._asdict()
        if not with_trace:
            del told["trace"]
        outcomes.append({**told, "seconds": round(seconds, 3)})
    return {**summary._asdict(), "outcomes": outcomes}
