"""The document is enough to write a client: what it says is typed, explained and true, and its examples work."""

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest

from governance.errors import DomainError
from governance.vocabulary import RoleName
from tests.factories import API, World, person_add
from tests.vault.api.contract import Contract, contract
from tests.vault.api.openapi import document
from tests.vault.forms.stored import form_add, proposal_add
from tests.vault.outbox import run_jobs
from tests.vault.store.pack_factories import offer_pack, subscribe
from vault.api.examples import EXAMPLES, MEMBER, MEMORY, OTHER_MEMORY, PACK_VERSION, PUBLICATION
from vault.cubes.filters import DEEPEST, EQUALITY, KNOWN, MOST_LEAVES, MOST_VALUES, ORDER
from vault.providers.ports import ProviderUnavailable
from vault.vocabulary import SearchMode

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
        if method in {"get", "post", "put", "patch", "delete"}
    ]


def test_every_mode_and_every_part_of_a_score_is_reported() -> None:
    assert all(f"| `{mode}`" in manual() for mode in SearchMode)
    for part, told in fields("ScorePartsSchema").items():
        assert f"`{part}`" in manual(), part
        assert told["description"], part
    assert "`mode: tag` has no parts" in manual()


def test_every_field_of_a_body_has_a_type() -> None:
    for name in ("MemoryInput", "MessageInput", "BulkInput", "SearchInput", "ConversationInput", "TurnInput"):
        for field, part in fields(name).items():
            assert {"type", "$ref", "allOf", "oneOf"} & set(part), (name, field)
    assert fields("SearchInput")["filters"]["type"] == fields("MemoryInput")["metadata"]["type"] == "object"


def test_field_with_an_unclear_name_is_described() -> None:
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
    assert "memoryos: the layers of one persona" in fields("SearchInput")["mode"]["description"]
    assert "stored first" in fields("MessageInput")["message_id"]["description"]
    assert "stored first" in fields("MemorySchema")["duplicate"]["description"]


def test_no_operation_offers_a_format(alice: Contract) -> None:
    for path, method, operation in operations():
        named = {parameter["name"] for parameter in operation.get("parameters", ())}
        is_of_files = path in {f"{API}imports/", f"{API}exports/"}  # whose `format` is their own
        assert "format" not in named or is_of_files or not path.startswith(API), (path, method)


def test_every_body_has_an_example() -> None:
    bodies = {
        operation["operationId"]
        for _path, _method, operation in operations()
        if "application/json" in operation.get("requestBody", {}).get("content", {})
    }
    assert bodies == set(EXAMPLES) == {name for name, *_ in examples()}


def examples() -> list[tuple[str, str, str, Any]]:
    """(operation, path, method, body) of each example that the document has."""
    return [
        (operation["operationId"], path, method, example["value"])
        for path, method, operation in operations()
        for content in operation.get("requestBody", {}).get("content", {}).values()
        for example in content.get("examples", {}).values()
    ]


def make_object(client: Contract, address: str, body: Schema) -> str:
    reply = client.post(address, body)
    assert reply.status == 201, reply
    found: str = reply.json["id"]
    return found


def review_made(client: Contract) -> str:
    client.add("Mail ana@example.com.")
    found: str = client.get("reviews/").json["results"][0]["id"]
    return found


def pack_built(client: Contract) -> tuple[str, str]:
    """A pack and the id of its version 1.0.0."""
    pack = make_object(client, "packs/", {"name": f"pack-{uuid4().hex[:8]}", "title": "Of a test"})
    memory = client.add(f"The heron {uuid4().hex} nests by the mill.")["id"]
    assert client.post(f"packs/{pack}/versions/", {"version": "1.0.0", "ids": [memory]}).status == 202
    run_jobs()
    return pack, client.get(f"packs/{pack}/versions/1.0.0/").json["id"]


def publication_waiting(client: Contract, world: World) -> str:
    """A publication that another member approves."""
    person_add(world.acme, f"{uuid4().hex[:8]}@acme.example", RoleName.ADMIN)
    body = {"pack_version": pack_built(client)[1], "visibility": "installation"}
    return make_object(client, "publications/", body)


def publication_made(client: Contract) -> str:
    """A publication for the organisation itself."""
    return make_object(client, "publications/", {"pack_version": pack_built(client)[1]})


def subscription_made(client: Contract) -> str:
    reply = client.post("subscriptions/", {"publication": publication_made(client)})
    assert reply.status == 202, reply
    run_jobs()
    found: str = reply.json["subscription"]["id"]
    return found


def install_publication(world: World, client: Contract) -> str:
    """A publication of another organisation, which this one subscribes to."""
    found = offer_pack(contract(world, "charlie"), "Herons nest by the mill.")
    subscribe(client, found)
    return found


def receive_proposal(client: Contract, world: World) -> str:
    """A proposal of another organisation for a pack of this one."""
    publication = offer_pack(client, "Herons nest by the mill.", name="proposed")
    charlie = contract(world, "charlie")
    subscription = subscribe(charlie, publication)
    change = {"memory": installed_memory(charlie), "content": "Herons nest here.", "reason": "Shorter."}
    assert charlie.post(f"subscriptions/{subscription['id']}/proposals/", change).status == 201
    run_jobs()
    found: str = client.get("proposals/").json["results"][0]["id"]
    return found


def installed_memory(client: Contract) -> str:
    """A memory of the newest subscription."""
    path = client.get("subscriptions/").json["results"][0]["namespace"]["path"]
    found: str = client.search("heron", namespaces=[path])[0]["id"]
    return found


def contract_made(client: Contract) -> str:
    subscription_made(client)
    found: str = client.get("contracts/").json["results"][0]["id"]
    return found


OF_AN_ENGINE = {"forms_create", "forms_proposals_update"}  # refused where no engine of one's own is configured
PLACES: dict[str, Callable[[Contract, World], str]] = {
    "memory_id": lambda client, world: client.add("Mail ana@example.com.", allow_duplicates=True)["id"],
    "conversation_id": lambda client, world: make_object(client, "conversations/", {}),
    "namespace_id": lambda client, world: make_object(client, "namespaces/", {"path": "/of/a/test"}),
    "review_id": lambda client, world: review_made(client),
    "endpoint_id": lambda client, world: make_object(client, "models/", EXAMPLES["models_add"]),
    "peer_id": lambda client, world: make_object(client, "sync/peers/", EXAMPLES["sync_peers_add"]),
    "policy_id": lambda client, world: make_object(
        client, "policies/", {"kind": "pii", "name": "of a test", "document": {"action": "allow"}}
    ),
    "key_id": lambda client, world: make_object(client, "api-keys/", {"scopes": ["chat"]}),
    "member_id": lambda client, world: str(world.alice.member.id),
    "persona_id": lambda client, world: make_object(client, "personas/", {"name": "of a test"}),
    "pack_id": lambda client, world: pack_built(client)[0],
    "publication_id": publication_waiting,
    "subscription_id": lambda client, world: subscription_made(client),
    "contract_id": lambda client, world: contract_made(client),
    "number": lambda client, world: "1.0.0",
    "proposal_id": receive_proposal,
    "webhook_id": lambda client, world: make_object(
        client, "webhooks/", {"url": "https://a.example/", "events": ["memory.*"]}
    ),
    "pipeline_id": lambda client, world: make_object(client, "pipelines/", {"name": "Mine", "steps": [{"op": "list"}]}),
    "schedule_id": lambda client, world: make_object(
        client, "schedules/", {"kind": "retention.apply", "cron": "0 3 * * *"}
    ),
    "subject_id": lambda client, world: make_object(client, "subjects/", {"reference": "of a test"}),
    "form_id": lambda client, world: str(
        form_add(world.olivia.actor, [UUID(client.add("No shoes indoors.", allow_duplicates=True)["id"])]).id
    ),
    "form_proposal_id": lambda client, world: str(
        proposal_add(world.olivia.actor, [UUID(client.add("No shoes indoors.", allow_duplicates=True)["id"])]).id
    ),
    "template_id": lambda client, world: make_object(
        client, "role-templates/", {"name": "of a test", "role": "editor"}
    ),
}


@pytest.mark.sampled(25)
@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_every_example_works(world: World, name: str) -> None:
    """As it stands, for an owner with what its address and its ids name."""
    ((path, method, body),) = [found[1:] for found in examples() if found[0] == name]
    olivia = contract(world, "olivia")
    make_object(olivia, "personas/", {"name": "Helper", "kind": "agent"})
    make_object(olivia, "namespaces/", {"path": "/team/notes"})
    for place in re.findall(r"{(\w+)}", path):
        find = installed_memory if "/overrides/{" in path and place == "memory_id" else None
        find = publication_made if name == "publications_try" else find
        find = partial(install_publication, world) if name in {"publications_rate", "publications_report"} else find
        path = path.replace(f"{{{place}}}", find(olivia) if find else PLACES[place](olivia, world))
    text = json.dumps(body)
    if MEMORY in text and name == "subscriptions_propose":
        text = text.replace(MEMORY, installed_memory(olivia))
    elif MEMORY in text:
        text = text.replace(MEMORY, PLACES["memory_id"](olivia, world))
    if OTHER_MEMORY in text:
        text = text.replace(OTHER_MEMORY, PLACES["memory_id"](olivia, world))
    if PACK_VERSION in text:
        text = text.replace(PACK_VERSION, pack_built(olivia)[1])
    if PUBLICATION in text:
        text = text.replace(PUBLICATION, publication_made(olivia))
    text = text.replace(MEMBER, str(world.bob.member.id))
    headers = {"if_match": '"1"'} if method == "patch" else {}
    reply = olivia.send(method.upper(), path, json.loads(text), **headers)
    assert reply.status in ({409} if name in OF_AN_ENGINE else {200, 201, 202}), reply


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
    assert alice.search_contents("Where does Ana live?") == ["Ana lives in Oslo.", "Ana lives in Rome."]
    for moment, known in (("2020-06-01", "Rome"), ("2021-01-01", "Oslo"), ("2026-06-01", "Oslo")):
        assert alice.search_contents("Where does Ana live?", as_of=f"{moment}T00:00:00Z") == [f"Ana lives in {known}."]
    assert alice.search_contents("Where does Ana live?", as_of="2019-01-01T00:00:00Z") == []
    assert "does not include `/team/sales`" in manual()
    alice.add("Deep.", namespace="/team/sales")
    assert alice.search_contents("Deep", namespaces=["/team"]) == []
