"""Every request that mem0's client can send: the ones that are answered, and the ones that have no equal here."""

import asyncio
import inspect
from typing import Any

import httpx
import pytest
from starlette.routing import compile_path

from memos_web.mem0.app import MEM0
from tests.mem0.package import mem0_module

PROJECT = "/api/v1/orgs/organizations/o/projects/p/"
CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "add": (("I like tea.",), {"user_id": "a"}, "POST /v3/memories/add/"),
    "search": (("tea",), {}, "POST /v3/memories/search/"),
    "get_all": ((), {"page": 1, "page_size": 2}, "POST /v3/memories/"),
    "get": (("m",), {}, "GET /v1/memories/m/"),
    "update": (("m",), {"text": "x"}, "PUT /v1/memories/m/"),
    "delete": (("m",), {}, "DELETE /v1/memories/m/"),
    "delete_all": ((), {"user_id": "a"}, "DELETE /v1/memories/"),
    "history": (("m",), {}, "GET /v1/memories/m/history/"),
    "users": ((), {}, "GET /v1/entities/"),
    "delete_users": ((), {"agent_id": "a"}, "DELETE /v2/entities/agent/a/"),
    "reset": ((), {}, "GET /v1/entities/"),
    "batch_update": (([{"memory_id": "m", "text": "x"}],), {}, "PUT /v1/batch/"),
    "batch_delete": (([{"memory_id": "m"}],), {}, "DELETE /v1/batch/"),
    "feedback": (("m",), {"feedback": "POSITIVE"}, "POST /v1/feedback/"),
}
CALLS_WITHOUT_EQUAL: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "create_memory_export": (("{}",), {}, "POST /v1/exports/"),
    "get_memory_export": ((), {}, "POST /v1/exports/get/"),
    "get_summary": ((), {}, "POST /v1/summary/"),
    "get_project": ((), {}, f"GET {PROJECT}"),
    "update_project": ((), {"custom_instructions": "x"}, f"PATCH {PROJECT}"),
    "get_webhooks": (("p",), {}, "GET /api/v1/webhooks/projects/p/"),
    "create_webhook": (("https://x.example", "n", "p", ["memory_add"]), {}, "POST /api/v1/webhooks/projects/p/"),
    "update_webhook": ((7,), {"name": "n"}, "PUT /api/v1/webhooks/7/"),
    "delete_webhook": ((7,), {}, "DELETE /api/v1/webhooks/7/"),
    "project.get": ((), {}, f"GET {PROJECT}"),
    "project.create": (("n",), {}, "POST /api/v1/orgs/organizations/o/projects/"),
    "project.update": ((), {"custom_instructions": "x"}, f"PATCH {PROJECT}"),
    "project.delete": ((), {}, f"DELETE {PROJECT}"),
    "project.get_members": ((), {}, f"GET {PROJECT}members/"),
    "project.add_member": (("a@x.example",), {}, f"POST {PROJECT}members/"),
    "project.update_member": (("a@x.example", "OWNER"), {}, f"PUT {PROJECT}members/"),
    "project.remove_member": (("a@x.example",), {}, f"DELETE {PROJECT}members/"),
}
REFUSED_BY_THE_CLIENT = {"chat"}  # it raises NotImplementedError


class Recorded:
    """A client of mem0 without a server: its requests after the first one, which asks for the key."""

    def __init__(self, kind: str) -> None:
        self.requests: list[str] = []
        transport = httpx.MockTransport(self._answer)
        self._is_blocking = kind == "MemoryClient"
        http = (httpx.Client if self._is_blocking else httpx.AsyncClient)(transport=transport)
        self.client = getattr(mem0_module(), kind)(api_key="k", host="http://memos.example/mem0", client=http)
        self.requests.clear()

    def call(self, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        owner: Any = self.client
        for part in name.split("."):
            owner = getattr(owner, part)
        answer = owner(*given, **named)
        if not self._is_blocking:
            asyncio.run(answer)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(f"{request.method} {request.url.path.removeprefix('/mem0')}")
        entities = [{"type": "user", "name": "a"}]
        return httpx.Response(200, json={"org_id": "o", "project_id": "p", "results": entities})


@pytest.fixture(params=["MemoryClient", "AsyncMemoryClient"])
def recorded_calls(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    """The asynchronous client asks for its key over a connection of its own, which is not made here."""

    def validate(client: Any) -> None:
        client.org_id, client.project_id = "o", "p"

    monkeypatch.setattr(mem0_module().AsyncMemoryClient, "_validate_api_key", validate)
    return Recorded(request.param)


def is_answered(request: str) -> bool:
    method, path = request.split(" ")
    return any(method == route[0] and compile_path(route[1])[0].match(path) for route in MEM0.routes)


@pytest.mark.parametrize("name", CALLS)
def test_call_of_a_memory_is_answered(recorded_calls: Recorded, name: str) -> None:
    given, named, expected = CALLS[name]
    recorded_calls.call(name, given, named)
    assert recorded_calls.requests[0] == expected
    assert all(is_answered(request) for request in recorded_calls.requests), recorded_calls.requests


@pytest.mark.parametrize("name", CALLS_WITHOUT_EQUAL)
def test_call_without_an_equal_sends_what_is_refused(recorded_calls: Recorded, name: str) -> None:
    given, named, expected = CALLS_WITHOUT_EQUAL[name]
    recorded_calls.call(name, given, named)
    assert recorded_calls.requests == [expected]
    assert not is_answered(expected)


@pytest.mark.parametrize("kind", ["MemoryClient", "AsyncMemoryClient"])
def test_every_method_of_the_client_is_in_one_of_the_tables(kind: str) -> None:
    def methods_of(owner: Any) -> set[str]:
        return {name for name, _ in inspect.getmembers(owner, inspect.isfunction) if not name.startswith("_")}

    projects = {
        "MemoryClient": mem0_module("mem0.client.project").Project,
        "AsyncMemoryClient": mem0_module("mem0.client.project").AsyncProject,
    }
    known = CALLS.keys() | CALLS_WITHOUT_EQUAL.keys() | REFUSED_BY_THE_CLIENT
    assert methods_of(getattr(mem0_module(), kind)) == {name for name in known if "." not in name}
    assert {f"project.{name}" for name in methods_of(projects[kind])} == {name for name in known if "." in name}
