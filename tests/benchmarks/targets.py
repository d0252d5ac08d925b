"""What each figure is to be. A figure without a target is there to explain another."""

from typing import NamedTuple


class Target(NamedTuple):
    """A bound."""

    least: float | None = None
    most: float | None = None

    def met(self, value: float) -> bool:
        """Tell whether a value is within it."""
        return (self.least is None or value >= self.least) and (
            self.most is None or value <= self.most
        )

    def __str__(self) -> str:
        bound = f"≥ {self.least:,.0f}" if self.least is not None else ""
        return bound or (f"≤ {self.most:,.4g}" if self.most is not None else "")


NONE = Target()
SAME_COST = "a sentence's cost, to that at the smallest size (processor time)"

_RAM, _PEAK = Target(most=12), Target(most=24)
_APPLY, _RECOVERY = Target(least=2e6), Target(least=1e6)
_P50, _P99, _STOP = Target(most=30), Target(most=300), Target(most=5000)

TARGETS = {
    "RAM, accounted": _RAM,
    "RAM, measured": _RAM,
    "RAM, accounted, most while growing": _PEAK,
    "RAM, measured, most while growing": _PEAK,
    "snapshot": Target(most=3),
    "apply, durable": _APPLY,
    "apply, processor time": _APPLY,
    "recovery from the log": _RECOVERY,
    "recovery from a snapshot": _RECOVERY,
    SAME_COST: Target(most=1.5),
}
_LATENCY = {": p50": _P50, ": p99": _P99, ": most": _STOP}


def target(name: str) -> Target:
    """Return a figure's target."""
    if name.startswith("row read") and "any length" not in name:
        return next((t for end, t in _LATENCY.items() if name.endswith(end)), NONE)
    return TARGETS.get(name, NONE)


def unit(name: str) -> str:
    """Return a figure's unit."""
    if name == SAME_COST:
        return "x"
    if name.startswith(("RAM", "snapshot", "disk")):
        return "bytes a connection"
    if name.startswith("log"):
        return "bytes an increment"
    if name.startswith("row read"):
        return "µs"
    if name.startswith("a sentence"):
        return "µs"
    return "increments/s" if name.startswith(("apply", "written")) else "connections/s"
