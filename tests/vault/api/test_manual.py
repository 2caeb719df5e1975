"""The document is enough to write a client: what it says is typed, explained and true, and its examples work."""

from typing import Any

from governance.errors import DomainError
from tests.factories import API
from tests.vault.api.contract import Contract
from tests.vault.api.openapi import document
from vault.cubes.filters import DEEPEST, EQUALITY, KNOWN, MOST_LEAVES, MOST_VALUES, ORDER
from vault.providers.ports import ProviderUnavailable

Schema = dict[str, Any]


def manual() -> str:
    return " ".join(document()["info"]["description"].split())


def fields(name: str) -> Schema:
    found: Schema = document()["components"]["schemas"][name]["properties"]
    return found


def operations() -> list[tuple[str, str, Schema]]:
    return [
        (path, method, operation)
        for path, found in document()["paths"].items()
        for method, operation in found.items()
        if method in {"get", "post", "patch", "delete"}
    ]


def test_every_field_of_a_body_has_a_type() -> None:
    for name in ("MemoryInput", "MessageInput", "BulkInput", "SearchInput", "ConversationInput", "TurnInput"):
        for field, part in fields(name).items():
            assert {"type", "$ref", "allOf", "oneOf"} & set(part), (name, field)
    assert fields("SearchInput")["filters"]["type"] == fields("MemoryInput")["metadata"]["type"] == "object"


def test_what_a_name_does_not_say_is_said() -> None:
    explained = {
        "MemoryInput": (
            "infer",
            "allow_duplicates",
            "valid_from",
            "valid_to",
            "expires_at",
            "ttl_seconds",
            "importance",
        ),
        "MessageInput": ("name", "timestamp", "message_id"),
        "SearchInput": ("top_k", "mode", "namespaces", "filters", "as_of", "min_score", "include_archived", "explain"),
        "MemorySchema": ("duplicate",),
    }
    for name, names in explained.items():
        for field in names:
            assert fields(name)[field].get("description"), (name, field)
    assert "memoryos: not available here" in fields("SearchInput")["mode"]["description"]
    assert "stored first" in fields("MessageInput")["message_id"]["description"]
    assert "stored first" in fields("MemorySchema")["duplicate"]["description"]


def test_no_operation_offers_a_format(alice: Contract) -> None:
    for path, method, operation in operations():
        named = {parameter["name"] for parameter in operation.get("parameters", ())}
        assert "format" not in named or not path.startswith(API), (path, method)


def test_every_example_works(alice: Contract) -> None:
    memory = alice.add("One.")["id"]
    conversation = alice.post("conversations/", {}).json["id"]
    tried = 0
    for path, method, operation in operations():
        content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        for example in content.get("examples", {}).values():
            address = path.replace("{memory_id}", memory).replace("{conversation_id}", conversation)
            reply = alice.send(method.upper(), address, example["value"], if_match='"1"')
            assert reply.status in {200, 201}, (path, reply)
            tried += 1
    assert tried == 7


def test_the_manual_names_every_code_field_operator_and_event() -> None:
    def below(kind: type[DomainError]) -> set[str]:
        return {kind.code}.union(*(below(each) for each in kind.__subclasses__()))

    assert ProviderUnavailable.code in below(DomainError)
    for name in (*below(DomainError), *KNOWN, *EQUALITY, *ORDER, "token", "citation", "done", "error"):
        assert f"`{name}`" in manual(), name
    for limit in (f"{DEEPEST} levels", f"{MOST_LEAVES} leaves", f"{MOST_VALUES} names and values"):
        assert limit in manual()


def test_what_it_says_of_validity_is_so(alice: Contract) -> None:
    past = {"valid_from": "2020-01-01T00:00:00Z", "valid_to": "2021-01-01T00:00:00Z"}
    alice.add("Ana lives in Rome.", **past)
    alice.add("Ana lives in Oslo.", valid_from="2021-01-01T00:00:00Z")
    assert "Without `as_of` a search does not look at them" in manual()
    assert alice.found("Where does Ana live?") == ["Ana lives in Oslo.", "Ana lives in Rome."]
    for moment, known in (("2020-06-01", "Rome"), ("2021-01-01", "Oslo"), ("2026-06-01", "Oslo")):
        assert alice.found("Where does Ana live?", as_of=f"{moment}T00:00:00Z") == [f"Ana lives in {known}."]
    assert alice.found("Where does Ana live?", as_of="2019-01-01T00:00:00Z") == []
    assert "does not include `/team/sales`" in manual()
    alice.add("Deep.", namespace="/team/sales")
    assert alice.found("Deep", namespaces=["/team"]) == []
