"""Build requests and parse replies, for both clients. Nothing here opens a connection."""

import json
import os
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

from memos_client.errors import ApiError, MemosError
from memos_client.models import Json, StreamEvent

FIRST_WAIT = 0.25  # seconds before the second try; doubled before each further one
LONGEST_WAIT = 30.0
REPEATABLE = frozenset({"GET", "POST"})  # a POST carries an Idempotency-Key; PATCH and DELETE carry none
PASSING = frozenset({429, 503})


def client_options(url: str | None, api_key: str | None, timeout: float, context: Mapping[str, str]) -> dict[str, Any]:
    """The options of the HTTP client. Raises MemosError without an address or a key."""
    url = url or os.environ.get("MEMOS_URL", "")
    api_key = api_key or os.environ.get("MEMOS_API_KEY", "")
    if not url or not api_key:
        raise MemosError("Give url and api_key, or set MEMOS_URL and MEMOS_API_KEY.")
    headers = {"Authorization": f"Bearer {api_key}", "Content-Type": "application/json"}
    headers |= {name: value for name, value in context.items() if value}
    return {"base_url": f"{url.rstrip('/')}/api/v1/", "headers": headers, "timeout": timeout}


def fields(**given: Any) -> Json:
    """A body or a query without what was not given; times as RFC 3339."""
    return {name: _plain(value) for name, value in given.items() if value is not None}


def changed_fields(changes: Mapping[str, Any]) -> Json:
    """The body of a change, in which None clears a field."""
    return {name: _plain(value) for name, value in changes.items()}


def list_query(filters: Mapping[str, Any] | None, **named: Any) -> Json:
    """The query of a list of memories; filters are sent as JSON."""
    return fields(filters=None if filters is None else json.dumps(filters), **named)


def path_of(*parts: str) -> str:
    """An address below /api/v1/, with each part quoted."""
    return "".join(f"{quote(part, safe='')}/" for part in parts)


def is_worth_a_retry(error: ApiError) -> bool:
    """True for what passes by itself: too many calls, a server that is busy, a first try that is still at work."""
    return error.code == "in_flight" or (error.status in PASSING and error.code != "quota_exhausted")


def read_event(name: str, line: str) -> tuple[str, StreamEvent | None]:
    """One line of a stream of events, after the event's `name` so far; the event once its data has come."""
    if line.startswith("event: "):
        return line.removeprefix("event: "), None
    if line.startswith("data: "):
        return "", StreamEvent(name, json.loads(line.removeprefix("data: ")))
    return name, None


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return list(value) if isinstance(value, tuple) else value
