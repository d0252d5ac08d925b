"""Formats connections as lines of text."""

from giaann_p2p.solo.reports import Connection

_CONTROLS = {chr(code): f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}
_ESCAPES = str.maketrans(_CONTROLS | {"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})
_PRIME = "*"
TSV_HEADER = "\t".join(
    (
        "source_concept",
        "source_feature",
        "target_concept",
        "target_feature",
        "branch",
        "segment",
        "strength",
    )
)


def tsv_line(connection: Connection) -> str:
    """Return the connection's tab-separated fields; control characters in texts are escaped."""
    return "\t".join(
        (
            connection.source_concept.translate(_ESCAPES),
            _feature(connection.source_feature),
            connection.target_concept.translate(_ESCAPES),
            _feature(connection.target_feature),
            str(connection.branch),
            str(connection.segment),
            str(connection.strength),
        )
    )


def _feature(feature: str | None) -> str:
    if feature is None:
        return _PRIME
    return rf"\{feature}" if feature == _PRIME else feature.translate(_ESCAPES)
