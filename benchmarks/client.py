"""A REST client that keeps one connection and times each call."""

import http.client
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

IDLE_SECONDS = 3.0


class BenchmarkError(Exception):
    """The run cannot continue. The message is one line for a person."""


@dataclass(frozen=True)
class Target:
    """A server, and the API key that the benchmark uses."""

    url: str
    api_key: str = field(repr=False)


def target_of(first_run: Path) -> Target:
    """Return the server of a data directory, from its first-run.json and the address file of its last start."""
    address = first_run.with_name("address")
    try:
        found = json.loads(first_run.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BenchmarkError(f"cannot read {first_run}: start the product with `make run` first") from error
    url = address.read_text(encoding="utf-8") if address.exists() else found["url"]
    return Target(url=url, api_key=found["api_key"])


class Client:
    """A REST client. Raises BenchmarkError for every unsuccessful response."""

    def __init__(self, target: Target) -> None:
        parts = urlsplit(target.url)
        self._connection = http.client.HTTPConnection(parts.hostname or "127.0.0.1", parts.port, timeout=60)
        self._headers = {"Authorization": f"Bearer {target.api_key}", "Content-Type": "application/json"}
        self._answered_at = time.monotonic()
        self.last_ms = 0.0

    def call(self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None) -> Any:
        """Return the parsed response. `last_ms`: the time from the first byte sent to the last byte read."""
        payload = None if body is None else json.dumps(body).encode()
        if time.monotonic() - self._answered_at > IDLE_SECONDS:
            self._connection.close()  # the server closes idle connections; the next request opens a new one
        started = time.perf_counter()
        try:
            self._connection.request(
                method, f"/api/v1/{path}", body=payload, headers={**self._headers, **(headers or {})}
            )
            answer = self._connection.getresponse()
            text = answer.read()
        except OSError as error:
            raise BenchmarkError(f"the server does not answer: {error}") from error
        self.last_ms = (time.perf_counter() - started) * 1000
        self._answered_at = time.monotonic()
        if answer.status >= 300:
            raise BenchmarkError(f"{method} {path} answered {answer.status}: {text[:300]!r}")
        return json.loads(text) if text else None

    def close(self) -> None:
        self._connection.close()
