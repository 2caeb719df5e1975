"""The two formats of log lines: text, and JSON with one object a line. Neither holds content."""

import traceback
from pathlib import Path
from typing import Any

import structlog
from structlog.typing import EventDict, Processor

ROOT = Path(__file__).resolve().parents[1]
FIELDS = ("method", "route", "status", "ms", "topic", "tenant", "events")
LINE = "%(asctime)s %(levelname)s %(name)s %(message)s"


def without_values(_: Any, __: str, line: EventDict) -> EventDict:
    """An exception as its type and the places that it passed: its message may repeat content."""
    failure = line.pop("exc_info", None)
    error = failure[1] if isinstance(failure, tuple) else failure
    if isinstance(error, BaseException):
        line["error"] = type(error).__name__
        line["at"] = [f"{_short(frame.filename)}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
    return line


def formatter(kind: str) -> dict[str, Any]:
    """The formatter of `logging.config` for `line` or `json`."""
    if kind == "line":
        return {"format": LINE}
    before: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(allow=FIELDS),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        without_values,
    ]
    last = [structlog.stdlib.ProcessorFormatter.remove_processors_meta, structlog.processors.JSONRenderer()]
    return {"()": "structlog.stdlib.ProcessorFormatter", "processors": last, "foreign_pre_chain": before}


def _short(path: str) -> str:
    return path.removeprefix(f"{ROOT}/").rpartition("site-packages/")[2]
