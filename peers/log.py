"""What a daemon writes to its standard error: a line for people, or one of JSON for programs."""

import logging
import time

import msgspec


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        when = time.strftime("%H:%M:%S", time.localtime(record.created))
        mark = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        text = _fit_to_print(record.getMessage())
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return f"{when} {mark}{text}"


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, object] = {
            "time": round(record.created, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            said["error"] = self.formatException(record.exc_info)
        return msgspec.json.encode(said).decode()


def _fit_to_print(text: str) -> str:
    """Some of it was said by strangers."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def log_to_stderr(*, as_json: bool, level: str = "info") -> None:
    """Write what `giaann_p2p` and the daemons say from now on."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Json() if as_json else _Lines())
    logger = logging.getLogger("giaann")
    logger.handlers[:] = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False
