"""A daemon's log on standard error: lines for people, or JSON lines for programs."""

import logging
import time

import msgspec

_LEVELS = {
    logging.DEBUG: "debug",
    logging.INFO: "info",
    logging.WARNING: "warning",
    logging.ERROR: "error",
}
_OURS = ("giaann", "giaann_p2p")
"""Names of the top loggers: that of the daemons and nodes, and that of the library's modules."""


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        when = time.strftime("%H:%M:%S", time.localtime(record.created))
        mark = "" if record.levelno <= logging.INFO else f"{_level(record)}: "
        text = _fit_to_print(record.getMessage())
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return f"{when} {mark}{text}"


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, object] = {
            "time": round(record.created, 3),
            "level": _level(record),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            said["error"] = self.formatException(record.exc_info)
        return msgspec.json.encode(said).decode()


def _level(record: logging.LogRecord) -> str:
    """Return the usual name of a log record's level, because libraries may rename levels."""
    return _LEVELS.get(record.levelno, record.levelname.lower())


def _fit_to_print(text: str) -> str:
    """Return a text with unprintable characters replaced, because strangers may have written it."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def log_to_stderr(*, as_json: bool, level: str = "info") -> None:
    """Write the log of the daemon and of `giaann_p2p`, from this level up, to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Json() if as_json else _Lines())
    for name in _OURS:
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level.upper())
        logger.propagate = False
