"""A client of a running product, over a real connection, and what an operator with the data directory can look up."""

import http.client
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import psycopg

from memos_web.config import read_config
from memos_web.embedded import postgres
from memos_web.embedded.bootstrap import DATABASE
from tests.harness.processes import descendants
from tests.harness.product import RunningServer

PROGRAMS = {
    "postgres": "bin/postgres -D",
    "redis": "/valkey-server",
    "web": "memos_web.embedded.web_process",
    "worker": "memos_web worker",
    "beat": "memos_web beat",
}
AGAIN = frozenset({409, 503})  # in flight, or a dependency is down: the same request may be sent again
# What other tests planned for later, such as the deletion of an organisation in a week, is not due.
UNDONE = "SELECT count(*) FROM governance_outboxevent WHERE done_at IS NULL AND created_at <= clock_timestamp()"
UNEMBEDDED = """
SELECT count(*) FROM vault_cube AS cube
WHERE cube.deleted_at IS NULL AND cube.state IN ('generated', 'activated') AND NOT cube.is_cold AND NOT EXISTS (
  SELECT FROM vault_embedding AS vector WHERE vector.cube_id = cube.id AND vector.version = cube.version)
"""


class NoAnswer(Exception):
    """The connection failed before a whole answer had come."""


@dataclass(frozen=True)
class Live:
    """The API of a running server, as the holder of a key."""

    base_url: str
    key: str = field(repr=False)

    @classmethod
    def of(cls, server: RunningServer) -> "Live":
        return cls(server.base_url, server.first_run["api_key"])

    def call(self, method: str, address: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Status and JSON. Raises NoAnswer."""
        status, content = self.read(method, address, body, **headers)
        return status, json.loads(content) if content else None

    def read(self, method: str, address: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(
            f"{self.base_url}/api/v1/{address}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.key}", "Content-Type": "application/json", **sent},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=15) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as problem:
            with problem:
                return problem.code, problem.read()
        except (OSError, http.client.HTTPException) as error:
            raise NoAnswer from error

    def done(self, method: str, address: str, body: Any = None, **headers: str) -> Any:
        """The JSON of a call that must succeed."""
        status, parsed = self.call(method, address, body, **headers)
        assert 200 <= status < 300, (method, address, status, parsed)
        return parsed

    def contents(self, asked: str) -> list[str]:
        """The contents of a whole list, page by page."""
        page = self.done("GET", f"memories/?page_size=200&{asked}")
        found = [memory["content"] for memory in page["results"]]
        while page["next"]:
            page = self.done("GET", page["next"].partition("/api/v1/")[2])
            found += [memory["content"] for memory in page["results"]]
        return found


@contextmanager
def superuser(server: RunningServer) -> Iterator[psycopg.Connection]:
    """The operator, over the socket of the embedded PostgreSQL."""
    database = postgres.of(read_config(server.settings()))
    assert database is not None
    with psycopg.connect(database.conninfo(database=DATABASE), autocommit=True) as connection:
        yield connection


def number(server: RunningServer, query: str) -> int:
    """The one number that `query` asks for."""
    with superuser(server) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return int(row[0])


def child(server: RunningServer, name: str) -> int:
    """The process of one program of this installation, 0 while there is none."""
    return min((pid for pid, line in descendants(server.pid).items() if PROGRAMS[name] in line), default=0)


@dataclass
class Writers:
    """Threads that write memories and send each again, under its key, until it is acknowledged.

    is_async: a job stores each memory later. pause: seconds between two writes of a thread.
    """

    live: Live
    namespace: str
    is_async: bool = False
    pause: float = 0.0
    acknowledged: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)  # of single attempts
    broken: list[str] = field(default_factory=list)  # answers that no attempt may get
    over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def writing(self, threads: int = 4) -> Iterator[None]:
        running = [threading.Thread(target=self._write, args=(index,)) for index in range(threads)]
        for thread in running:
            thread.start()
        try:
            yield
        finally:
            self.over.set()
            for thread in running:
                thread.join(timeout=60)
        assert not any(thread.is_alive() for thread in running)

    def _write(self, index: int) -> None:
        count = 0
        while not self.over.is_set():
            content = f"Writer {index} wrote number {count} into {self.namespace}."
            if not self._insist(content):
                return
            self.acknowledged.append(content)
            count += 1
            self.over.wait(self.pause)

    def _insist(self, content: str) -> bool:
        """Send until acknowledged; False for an answer that is neither a success nor a reason to try again."""
        key = str(uuid4())
        body = {"content": content, "namespace": self.namespace, "allow_duplicates": True}
        address, done = ("memories/?async=true", 202) if self.is_async else ("memories/", 201)
        while True:
            try:
                status, answer = self.live.call("POST", address, body, idempotency_key=key)
            except NoAnswer:
                status, answer = 0, None
            if status == done:
                return True
            if status and status not in AGAIN:
                self.broken.append(f"{status} {answer}")
                return False
            self.refusals.append(f"{status}")
            threading.Event().wait(0.05)
