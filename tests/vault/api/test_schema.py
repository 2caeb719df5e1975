"""The OpenAPI document is valid, complete, and readable without asking anyone else."""

import re

from django.test import Client, override_settings
from django.urls import URLPattern, URLResolver, get_resolver
from drf_spectacular.validation import validate_schema

from governance.api.access_urls import urlpatterns as access
from governance.api.audit_urls import urlpatterns as audit
from governance.api.jobs_urls import urlpatterns as jobs
from governance.api.urls import urlpatterns as accounts
from tests.factories import ApiReply, World
from tests.vault.api.contract import MISSING, Contract
from tests.vault.api.openapi import document, faults_of
from vault.api.urls import urlpatterns as product

EXTERNAL = re.compile(r"""(?:src|href|url)\s*[=(:]\s*["']?(?:https?:)?//""")


def test_the_document_is_openapi_3() -> None:
    assert document()["openapi"].startswith("3.")
    validate_schema(document())  # type: ignore[no-untyped-call]


def test_every_address_of_the_api_is_in_it() -> None:
    described = {re.sub(r"\{\w+\}", "*", path) for path in document()["paths"]}
    served = {
        "/api/v1/" + re.sub(r"<[^>]+>", "*", str(route.pattern))
        for route in (*product, *audit, *jobs, *accounts, *access)
    }
    assert served <= described


def test_the_api_has_no_other_addresses() -> None:
    """A list to be lengthened by hand: whoever adds an address sees the tests that it needs."""
    under_v1 = [
        route
        for resolver in get_resolver().url_patterns
        if isinstance(resolver, URLResolver) and str(resolver.pattern) == "api/v1/"
        for route in resolver.url_patterns
    ]
    assert all(isinstance(route, URLPattern) for route in under_v1)
    assert len(under_v1) == len(product) + len(audit) + len(jobs) + len(accounts) + len(access)
    assert (len(product), len(audit), len(jobs), len(accounts), len(access)) == (143, 15, 10, 14, 8)


def test_operations_have_names_of_their_own_and_say_how_to_sign_in() -> None:
    operations = [
        operation
        for path in document()["paths"].values()
        for method, operation in path.items()
        if method in {"get", "post", "patch", "delete", "put"}
    ]
    names = [operation["operationId"] for operation in operations]
    assert len(names) == len(set(names))
    assert all(operation["security"] for operation in operations)
    assert "ApiKey" in document()["components"]["securitySchemes"]


def test_each_operation_has_a_summary_and_no_docstring_of_the_code() -> None:
    operations = [item for path in document()["paths"].values() for item in path.values() if "operationId" in item]
    for operation in operations:
        assert 3 <= len(operation.get("summary", "")) <= 120, operation["operationId"]
    schemas = document()["components"]["schemas"]
    inputs = {name.removeprefix("Patched"): key.get("description", "") for name, key in schemas.items()}
    told = [text for name, text in inputs.items() if text and not name.endswith("Enum")]
    assert len(told) == len(set(told)), "two schemas with one description: an heir shows what its base says of the code"


def test_only_what_a_call_can_answer_is_described() -> None:
    def statuses(path: str, method: str) -> set[str]:
        return set(document()["paths"][f"/api/v1/{path}"][method]["responses"])

    read = {"200", "400", "401", "403", "405", "406", "429", "503"}
    assert statuses("memories/", "get") == read | {"304"}
    assert statuses("memories/{memory_id}/", "get") == read | {"304", "404"}
    assert statuses("memories/{memory_id}/", "patch") == read | {"404", "409", "412", "413", "415", "423", "428"}
    assert statuses("conversations/{conversation_id}/turns/", "post") >= {"200", "201", "409", "422"}
    kinds = document()["paths"]["/api/v1/conversations/{conversation_id}/turns/"]["post"]["responses"]["200"]["content"]
    assert set(kinds) == {"text/event-stream"}


def test_it_is_given_to_anyone_and_so_is_its_documentation() -> None:
    with override_settings(STATIC_ROOT=None):
        page = Client().get("/api/docs/")
    assert page.status_code == 200
    body = page.content.decode()
    assert EXTERNAL.findall(body) == []
    assert "unsafe-eval" not in page.headers["Content-Security-Policy"]
    assert "https:" not in page.headers["Content-Security-Policy"]


def test_the_check_itself_finds_what_is_not_described(world: World, alice: Contract) -> None:
    """Each a lie that a reply could tell."""
    good = alice.get("me/")
    assert faults_of("GET", "me/", good) == []
    for status, body, kind in (
        (418, good.json, "application/json"),
        (200, good.json, "text/plain"),
        (200, good.json | {"extra": 1}, "application/json"),
        (200, {name: part for name, part in good.json.items() if name != "limits"}, "application/json"),
        (200, good.json | {"tenant": None}, "application/json"),
        (200, good.json | {"roles": ["emperor"]}, "application/json"),
    ):
        assert faults_of("GET", "me/", ApiReply(status, body, {"Content-Type": kind}, b"{}")) != [], body
    memory = alice.add("One.") | {"created_at": "2026-01-01T00:00:00"}
    reply = ApiReply(200, memory, {"Content-Type": "application/json"}, b"{}")
    assert faults_of("GET", f"memories/{MISSING}/", reply) != []


def test_me_tells_who_the_caller_is(world: World, alice: Contract) -> None:
    me = alice.get("me/").json
    assert me["tenant"] == {"id": str(world.acme.id), "slug": "acme", "name": "Acme"}
    assert me["roles"] == ["editor"]
    assert me["principal"]["kind"] == "api_key"
    assert me["principal"]["email"] == "alice@acme.example"
    assert me["principal"]["key_prefix"] == world.alice.key.prefix
    assert [persona["name"] for persona in me["personas"]] == ["alice"]
    assert me["limits"]["content_characters"] == 32_000
    assert world.alice.key.text not in str(me)


def test_each_call_about_memories_names_the_header_of_its_purpose() -> None:
    operations = {
        operation["operationId"]: {row["name"] for row in operation.get("parameters", ())}
        for methods in document()["paths"].values()
        for operation in methods.values()
    }
    about = {name for name in operations if name.startswith(("memories_", "conversations_", "turns_", "reviews_"))}
    about |= {"namespaces_summary", "packs_preview", "packs_versions_create", "publications_try"}
    about |= {"exports_create", "exports_jsonl", "exports_markdown", "exports_mempack", "imports_create"}
    about |= {"sync_memories_list", "sync_memories_read", "sync_memories_write"}
    about |= {f"personas_{part}" for part in ("stm", "segments", "profile", "profile_update", "working_set")}
    about |= {"pipelines_run", "pipelines_run_steps"}
    about |= {
        f"forms_{part}"
        for part in (
            "list",
            "create",
            "read",
            "update",
            "text",
            "approve",
            "delete",
            "proposals_list",
            "proposals_update",
        )
    }
    assert len(about) > 20
    assert {name for name, parameters in operations.items() if "X-Memory-Purpose" in parameters} == about


def test_lists_and_page_size_state_their_bounds() -> None:
    schemas, operations = document()["components"]["schemas"], document()["paths"].values()
    sizes = [
        parameter["schema"]
        for path in operations
        for operation in path.values()
        for parameter in operation.get("parameters", ())
        if parameter["name"] == "page_size"
    ]
    assert len(sizes) > 20
    assert all(size == {"type": "integer", "minimum": 1, "maximum": 200, "default": 50} for size in sizes)
    fields = [
        (name, field, part)
        for name, schema in schemas.items()
        if name.endswith("Input")
        for field, part in schema.get("properties", {}).items()
    ]
    assert [
        (name, field) for name, field, part in fields if part.get("type") == "array" and "maxItems" not in part
    ] == []
