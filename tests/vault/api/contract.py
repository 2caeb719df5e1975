"""The API as a client developer uses it: every reply is checked against the OpenAPI document, problems included."""

import json
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from asgiref.sync import async_to_sync
from django.http import StreamingHttpResponse
from django.test import Client

from governance.vocabulary import Scope
from tests.factories import API, ApiClient, ApiReply, World, key_for
from tests.vault.api.openapi import faults_of

PROBLEM_FIELDS = {"type", "title", "status", "detail", "code", "request_id"}
MISSING = UUID("00000000-0000-7000-8000-000000000000")


@dataclass(frozen=True)
class Event:
    """One server-sent event."""

    name: str
    data: Any


@dataclass(frozen=True)
class Contract(ApiClient):
    """An ApiClient that fails as soon as a reply is not what the document says."""

    def send(self, method: str, address: str, body: Any, **headers: str) -> ApiReply:
        reply = super().send(method, address, body, **headers)
        check(method, address, reply)
        return reply

    def raw(self, address: str, body: bytes, *, content_type: str = "application/json") -> ApiReply:
        """POST these very bytes."""
        client = Client(headers={"authorization": f"Bearer {self.key}"}, raise_request_exception=False)
        response = client.generic("POST", API + address, data=body, content_type=content_type)
        parsed = json.loads(response.content)
        reply = ApiReply(response.status_code, parsed, dict(response.headers), response.content)
        check("POST", address, reply)
        return reply

    def stream(self, address: str, body: Any) -> list[Event]:
        """POST, and read the whole of the streamed answer."""
        client = Client(headers={"authorization": f"Bearer {self.key}", "accept": "text/event-stream"})
        response = client.generic(
            "POST", API + address, data=json.dumps(body).encode(), content_type="application/json"
        )
        assert response.headers["Content-Type"].startswith("text/event-stream"), response.content
        body = async_to_sync(_whole)(cast(StreamingHttpResponse, response))
        check("POST", address, ApiReply(response.status_code, None, dict(response.headers), body))
        return events_in(body)

    def add(self, content: str, **fields: Any) -> dict[str, Any]:
        """Store one memory; the memory."""
        reply = self.post("memories/", {"content": content, **fields})
        assert reply.status == 201, reply
        memory: dict[str, Any] = reply.json["results"][0]
        return memory

    def search(self, query: str, **fields: Any) -> list[dict[str, Any]]:
        reply = self.post("memories/search/", {"query": query, **fields})
        assert reply.status == 200, reply
        results: list[dict[str, Any]] = reply.json["results"]
        return results

    def search_contents(self, query: str, **fields: Any) -> list[str]:
        """The contents of a search, sorted, for searches whose order does not matter."""
        return sorted(memory["content"] for memory in self.search(query, **fields))

    def list_contents(self, asked: str = "") -> list[str]:
        """The contents of a list, newest first."""
        reply = self.get(f"memories/?{asked}")
        assert reply.status == 200, reply
        return [memory["content"] for memory in reply.json["results"]]


def check(method: str, address: str, reply: ApiReply) -> None:
    """Fail unless the document allows `reply`, and unless a failure is a whole problem."""
    assert reply.status < 500 or reply.status == 503, (method, address, reply.body)
    assert faults_of(method, address, reply) == [], (method, address, reply.body[:500])
    if reply.status >= 400:
        check_problem(reply)


def check_problem(reply: ApiReply) -> None:
    """RFC 9457, as the contract has it."""
    assert reply.headers["Content-Type"] == "application/problem+json"
    assert set(reply.json) - {"errors"} == PROBLEM_FIELDS
    assert reply.json["status"] == reply.status
    assert reply.json["request_id"]
    assert all(set(fault) == {"field", "message"} for fault in reply.json.get("errors", []))


def contract(world: World, name: str, *scopes: Scope) -> Contract:
    """The API as the person with this name; `scopes`: by a key with these alone."""
    person = world.person(name)
    return Contract(key=(key_for(person, *scopes) if scopes else person.key).text)


def fields_at_fault(reply: ApiReply) -> set[str]:
    """The fields that a 400 names."""
    assert reply.status == 400, reply
    return {fault["field"] for fault in reply.json["errors"]}


def without_id(reply: ApiReply) -> tuple[int, dict[str, Any]]:
    """Status and body of a problem but for its request's own id, to compare two."""
    return reply.status, {name: value for name, value in reply.json.items() if name != "request_id"}


def events_in(body: bytes) -> list[Event]:
    blocks = body.decode().strip().split("\n\n")
    parsed = [dict(line.split(": ", 1) for line in block.splitlines()) for block in blocks]
    return [Event(block["event"], json.loads(block["data"])) for block in parsed]


async def _whole(response: StreamingHttpResponse) -> bytes:
    parts = [part async for part in response]
    response.close()
    return b"".join(parts)
