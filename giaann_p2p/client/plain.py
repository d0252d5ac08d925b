"""Results as plain values for JSON, the same from the command line and over HTTP."""

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from giaann_p2p.client.trained import TrainReport
    from giaann_p2p.model.said import AnyToken
    from giaann_p2p.solo.reports import Trained
    from giaann_p2p.swarm.members.checkup import Report
    from giaann_p2p.swarm.members.overview import Overview
    from giaann_p2p.swarm.wire.prompt_messages import Cost


def overview_json(found: "Overview") -> dict[str, Any]:
    """Return an overview of a swarm as plain values, for JSON."""
    return {"verdict": found.verdict, **_plain(found)}


def report_json(report: "Report") -> dict[str, Any]:
    """Return the report of a check as plain values, for JSON."""
    return {"agrees": report.agrees, **_plain(report)}


def _plain(value: msgspec.Struct) -> dict[str, Any]:
    """Return a struct as plain values; peers' ids become their full names."""
    return {name: _named(one) for name, one in msgspec.structs.asdict(value).items()}


def _named(value: object) -> object:
    if isinstance(value, bytes):
        return _text(value)
    if isinstance(value, msgspec.Struct):
        return _plain(value)
    if isinstance(value, dict):
        return {_text(peer): shards for peer, shards in value.items()}
    if isinstance(value, list | tuple):
        return [_named(one) for one in value]
    return value


def token_json(token: "AnyToken") -> dict[str, Any]:
    """Return a token with its neuron, score and number of candidates as plain values, for JSON."""
    share, rivals = share_of(token), getattr(token, "rivals", ())
    return {
        "text": token.text,
        "word": token.word,
        "concept": token.name.concept,
        "feature": token.name.feature,
        "timing": token.timing,
        "score": round(token.score, 6),
        "candidates": token.candidates,
        **({} if share is None else {"probability": round(share, 6)}),
        **({"rivals": [_rival_json(*rival) for rival in rivals]} if rivals else {}),
    }


def _rival_json(word: str, share: float) -> dict[str, Any]:
    return {"text": word, "probability": round(share, 6)}


def share_of(token: "AnyToken") -> float | None:
    """Return the probability of a token; None if its profile gives none."""
    return getattr(token, "probability", None)


def cost_json(cost: "Cost") -> dict[str, Any]:
    """Return the cost of a token as plain values, for JSON; times are in milliseconds."""
    return {
        "ms": cost.micros / 1000,
        "waited_ms": cost.waited / 1000,
        "rows": cost.rows,
        "at_hand": cost.kept,
        "round_trips": cost.trips,
        "bytes": cost.nbytes,
    }


def trained_json(report: "Trained") -> dict[str, Any]:
    """Return a report on a learned text as plain values, for JSON."""
    skips = {
        reason.value: {"count": count, "first_line": report.skips.first_lines[reason]}
        for reason, count in report.skips.counts.items()
    }
    return {**vars(report), "known": report.known, "skips": skips}


def taught_json(report: "TrainReport") -> dict[str, Any]:
    """Return a report on a text that a swarm learned as plain values, for JSON."""
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


def _text(peer: bytes) -> str:
    from giaann_p2p.swarm.wire.identity import to_text  # not needed for a brain

    return to_text(peer)
