"""Compares options that shape a new swarm with a swarm that was founded before."""

from collections.abc import Iterator
from shlex import quote

from bootstrap.options import SHAPING, BootstrapOptions
from giaann_p2p.model.traits import traits_of
from giaann_p2p.store.cut_choice import named_cuts, of_nouns
from giaann_p2p.store.cuts import Cut
from giaann_p2p.swarm.wire.edition import rules_of
from giaann_p2p.swarm.wire.manifest import Manifest, Rules, usual_quorum
from peers.options import flag

_RAISED = "shards", "replicas", "chunk"
"""The numbers that the founder can raise while the swarm runs."""
_CUTS = "cut", "cut_like"
_Value = int | str | tuple[Cut, ...]


def without_effect(options: BootstrapOptions, manifest: Manifest, rules: Rules) -> Iterator[str]:
    """Yield a line for each given option that the swarm of this manifest does not have.

    `rules`: those in force. An option has the right value as well if it is that of the founding,
    because the command that founded the swarm also serves it after a restart.
    """
    wanted = _wanted(options, manifest)
    founded, now = _had(manifest, rules_of(manifest, None)), _had(manifest, rules)
    for name in SHAPING:
        if name in options.given and wanted[name] not in (founded[name], now[name]):
            yield (
                f"{_shown(name, getattr(options, name))} has no effect: the swarm was founded"
                f" before, and has {_shown(name, now[name])}; {_remedy(name, wanted, now)}"
            )


def _wanted(options: BootstrapOptions, manifest: Manifest) -> dict[str, _Value]:
    """Return the values that the options stand for; 0 may stand for a default.

    Which columns a sample of a text cuts is not found out again: any cut columns count as those.
    """
    spec = manifest.spec
    return {name: getattr(options, name) for name in SHAPING} | {
        "quorum": options.quorum or usual_quorum(manifest.replicas),
        "blocks": options.blocks or traits_of(spec.profile).blocks,
        "cut": of_nouns(named_cuts(options.cut), spec),
        "cut_like": manifest.layout.columns.cuts or options.cut_like or (),
    }


def _had(manifest: Manifest, rules: Rules) -> dict[str, _Value]:
    """Return the values of the same options that a swarm has by its manifest and rules."""
    spec, cuts = manifest.spec, rules.columns.cuts
    return {
        "shards": rules.shards,
        "replicas": rules.replicas,
        "quorum": rules.quorum,
        "redundancy": manifest.redundancy,
        "blocks": manifest.layout.blocks,
        "chunk": rules.chunk,
        "cut": cuts,
        "cut_like": cuts,
        "profile": spec.profile,
        "column_segments": spec.column_segments if spec.profile == "subwords" else 0,
        "open": manifest.admission == "open",
    }


def _shown(name: str, value: _Value) -> str:
    """Return an option as it is written on the command line, or how many columns are cut."""
    if isinstance(value, tuple):
        return f"{len(value) or 'no'} cut columns"
    if isinstance(value, bool):
        return flag(name if value else f"no-{name}")
    return f"{flag(name)} {quote(str(value))}"


def _remedy(name: str, wanted: dict[str, _Value], now: dict[str, _Value]) -> str:
    """Return what would give the swarm the wanted value."""
    more, less = wanted[name], now[name]
    if name in _CUTS or (
        name in _RAISED and isinstance(more, int) and isinstance(less, int) and more > less
    ):
        return f"giaann reshard {flag(name)} can change that while the swarm runs"
    return "only another swarm, founded in another --data-dir, can have that"
