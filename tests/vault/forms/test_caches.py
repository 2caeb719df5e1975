"""Activation memory: caches of context blocks that follow their sources, named after the sentences of the promise."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings
from pytest_httpserver import HTTPServer

from governance.database import acting
from memos_web.config import LlmChoice
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import MISSING, Contract
from tests.vault.forms.twin import TOKEN, EngineTwin
from tests.vault.outbox import run_jobs
from vault.forms.payloads import payload_name, payload_open, payload_store
from vault.models import Cube, MemoryForm
from vault.providers.registry import blob_store

FACTS = [
    "Visitors leave their bags in the cloakroom beside the entrance before they enter the halls.",
    "The museum closes at six, and the last guided tour begins at half past four.",
    "Photographs are allowed without a flash, except in the room of the watercolours.",
]
QUESTION = "When does the museum close?"


@pytest.fixture
def engine(httpserver: HTTPServer) -> Iterator[EngineTwin]:
    twin = EngineTwin()
    twin.serve(httpserver)
    choice = LlmChoice(url=httpserver.url_for("/v1"), key=TOKEN, model=twin.name, reads=False, engine="local")
    with override_settings(MEMOS_LLM=choice):
        yield twin


def persona_of(client: Contract) -> str:
    return str(client.get("me/").json["personas"][0]["id"])


def add_facts(client: Contract, **fields: Any) -> list[str]:
    ids = [client.add(fact, **fields)["id"] for fact in FACTS]
    run_jobs()
    return ids


def make_cache(client: Contract, memory_ids: list[str], **fields: Any) -> dict[str, Any]:
    """Make a cache, mounted on the client's persona; the form."""
    body = {"memory_ids": memory_ids, "title": "House rules", "persona": persona_of(client), **fields}
    job = client.post("forms/", body)
    assert job.status == 202, job
    run_jobs()
    done = client.get(f"jobs/{job.json['job']['id']}/").json
    assert done["status"] == "succeeded", done
    form: dict[str, Any] = client.get(f"forms/{done['result']['form_id']}/").json
    return form


def ask(client: Contract, **fields: Any) -> dict[str, Any]:
    conversation = client.post("conversations/", fields).json["id"]
    turn = client.post(f"conversations/{conversation}/turns/", {"content": QUESTION})
    assert turn.status == 201, turn
    return {**turn.json, "conversation": conversation}


def used_caches(engine: EngineTwin) -> list[str]:
    return list(engine.asked[-1]["caches"])


def test_turn_whose_context_begins_with_the_block_uses_its_cache_and_says_why(
    engine: EngineTwin, world: World, alice: Contract
) -> None:
    form = make_cache(alice, add_facts(alice))
    assert form["kind"] == "activation"
    turn = ask(alice)
    assert len(used_caches(engine)) == 1
    prompt = engine.asked[-1]["messages"]
    assert [fact in prompt[1]["content"] for fact in FACTS] == [True, True, True]
    assert prompt[1]["content"].index(FACTS[0]) < prompt[1]["content"].index(FACTS[2])
    assert turn["usage"]["cached_tokens"] > 0
    assert turn["citations"][0]["memory_id"] == form["parents"][0]
    why = signed_in(world.alice).get(f"/chat/{turn['conversation']}/turns/{turn['id']}/why/").content.decode()
    assert "As a cache, at the head of the prompt: mounted; the first word comes after" in why
    assert alice.get(f"forms/{form['id']}/").json["saved_tokens"] == form["tokens"]


def test_cache_is_loaded_at_its_first_use_and_from_the_sealed_payload(engine: EngineTwin, alice: Contract) -> None:
    form = make_cache(alice, add_facts(alice))
    built = dict(engine.caches)
    engine.caches.clear()  # as a restart of the engine does
    ask(alice)
    assert engine.caches == built
    alice.patch(f"forms/{form['id']}/", {"pinned": True})
    engine.caches.clear()
    ask(alice)
    assert engine.pinned == set(built)


def test_payload_is_sealed_in_the_blob_store(engine: EngineTwin, world: World, alice: Contract) -> None:
    form = make_cache(alice, add_facts(alice))
    with acting(world.alice.actor):
        row = MemoryForm.objects.get(id=form["id"])
    sealed = blob_store().read(payload_name(row.tenant_id, row.id))
    assert sealed is not None
    assert FACTS[0].encode() not in sealed
    assert FACTS[0].encode() in (payload_open(row) or b"")


def test_cache_is_in_no_list_and_no_search_result_unless_its_type_is_named(engine: EngineTwin, alice: Contract) -> None:
    form = make_cache(alice, add_facts(alice))
    assert form["memory_id"] not in [memory["id"] for memory in alice.get("memories/").json["results"]]
    assert "House rules" not in alice.search_contents("House rules")
    assert [memory["id"] for memory in alice.get("memories/?type=activation").json["results"]] == [form["memory_id"]]


@pytest.mark.parametrize("change", ["changed", "expired", "erased", "deleted", "cache erased"])
def test_cache_is_unusable_at_once_when_a_parent_is_changed_expired_or_erased(
    change: str, engine: EngineTwin, world: World, alice: Contract
) -> None:
    ids = add_facts(alice)
    form = make_cache(alice, ids)
    assert ask(alice)["usage"]["cached_tokens"] > 0
    match change:
        case "changed":
            edited = alice.patch(f"memories/{ids[1]}/", {"content": "It closes at seven."}, **{"If-Match": '"1"'})
            assert edited.status == 200, edited
        case "expired":
            with acting(world.alice.actor):
                Cube.objects.filter(id=ids[1]).update(expires_at="2020-01-01T00:00:00Z")
        case "erased":
            assert alice.delete(f"memories/{ids[1]}/?purge=true").status == 204
        case "deleted":
            assert alice.delete(f"memories/{ids[1]}/").status == 204
        case _:
            assert alice.delete(f"forms/{form['id']}/").status == 204
    ask(alice)  # no job has run since
    assert used_caches(engine) == []
    if change != "cache erased":
        assert FACTS[1] not in "".join(message["content"] for message in engine.asked[-1]["messages"])


def test_erased_parent_takes_the_payload_from_the_blob_store_and_the_engine(
    engine: EngineTwin, world: World, alice: Contract
) -> None:
    ids = add_facts(alice)
    form = make_cache(alice, ids)
    with acting(world.alice.actor):
        name = payload_name(world.acme.id, MemoryForm.objects.get(id=form["id"]).id)
    assert alice.delete(f"memories/{ids[0]}/?purge=true").status == 204
    run_jobs()
    assert blob_store().read(name) is None
    assert engine.caches == {}
    assert engine.forgotten
    assert alice.get(f"forms/{form['id']}/").status == 404


def test_reader_without_the_right_to_one_parent_never_gets_the_cache(
    engine: EngineTwin, world: World, olivia: Contract, alice: Contract
) -> None:
    for path in ("/team/rules", "/team/secret"):
        assert olivia.post("namespaces/", {"path": path, "kind": "shared"}).status == 201
    shared = [olivia.add(fact, namespace="/team/rules")["id"] for fact in FACTS[:2]]
    hidden = olivia.add(FACTS[2], namespace="/team/rules")["id"]
    run_jobs()
    agent = olivia.post("personas/", {"name": "guide", "kind": "agent"}).json["id"]
    form = make_cache(olivia, [*shared, hidden], persona=agent)
    assert ask(alice, agent_persona=agent)["usage"]["cached_tokens"] > 0  # she may read all three
    denial = {
        "principal": {"kind": "member", "id": str(world.alice.member.id)},
        "object": {"type": "memory", "id": hidden},
    }
    denied = olivia.post("grants/", {**denial, "action": "read", "effect": "deny"})
    assert denied.status == 201, denied
    ask(alice, agent_persona=agent)
    assert used_caches(engine) == []
    assert FACTS[2] not in str(engine.asked[-1]["messages"])
    assert alice.get(f"forms/{form['id']}/").status == 404
    assert ask(olivia, agent_persona=agent)["usage"]["cached_tokens"] > 0


def test_another_tenant_and_a_viewer_make_and_change_no_cache(
    engine: EngineTwin, alice: Contract, bob: Contract, charlie: Contract
) -> None:
    ids = add_facts(alice)
    form = make_cache(alice, ids)
    body = {"memory_ids": ids, "title": "Theirs"}
    assert bob.post("forms/", body).status == 403
    assert charlie.post("forms/", body).status == 404
    for client, status in ((bob, 403), (charlie, 404)):
        assert client.patch(f"forms/{form['id']}/", {"pinned": True}).status in {status, 404}
        assert client.delete(f"forms/{form['id']}/").status in {status, 404}
    assert charlie.get("forms/").json["results"] == []
    assert alice.get(f"forms/{form['id']}/").json == form
    assert alice.get(f"forms/{MISSING}/").status == 404


def test_request_of_one_tenant_shares_no_prefix_with_another(
    engine: EngineTwin, alice: Contract, charlie: Contract
) -> None:
    ask(alice)
    ask(charlie)
    salts = [asked["cache_salt"] for asked in engine.asked]
    assert all(salts)
    assert salts[0] != salts[1]


def test_text_is_chosen_where_a_cache_saves_no_time(engine: EngineTwin, world: World, alice: Contract) -> None:
    engine.fingerprint, engine.text_token = "d" * 64, 0.0005  # faster than the cache of a token
    form = make_cache(alice, add_facts(alice))
    turn = ask(alice)
    assert used_caches(engine) == []
    assert FACTS[1] in engine.asked[-1]["messages"][1]["content"]
    why = signed_in(world.alice).get(f"/chat/{turn['conversation']}/turns/{turn['id']}/why/").content.decode()
    assert "As text, at the head of the prompt: mounted; as text it is as fast" in why
    assert alice.get(f"forms/{form['id']}/").json["uses"] == 0


@pytest.mark.parametrize("trouble", ["another model", "a busy engine"])
def test_answer_takes_the_text_when_the_engine_cannot_take_the_cache(
    trouble: str, engine: EngineTwin, alice: Contract
) -> None:
    make_cache(alice, add_facts(alice))
    engine.fingerprint = "e" * 64 if trouble == "another model" else engine.fingerprint
    engine.is_busy = trouble == "a busy engine"
    ask(alice)
    assert used_caches(engine) == []
    assert FACTS[1] in engine.asked[-1]["messages"][1]["content"]


def test_dry_run_tells_cost_and_saving_and_makes_nothing(engine: EngineTwin, alice: Contract) -> None:
    body = {"memory_ids": add_facts(alice), "title": "House rules"}
    dry = alice.post("forms/?dry_run=true", body).json
    assert dry["job"] is None
    assert dry["estimate"]["form"] == "cache"
    assert dry["estimate"]["tokens"] > 50
    assert dry["estimate"]["cache_seconds"] < dry["estimate"]["text_seconds"]
    assert engine.caches == {}
    assert alice.get("forms/").json["results"] == []


def test_conversion_without_an_engine_is_refused(alice: Contract) -> None:
    reply = alice.post("forms/", {"memory_ids": add_facts(alice), "title": "House rules"})
    assert reply.status == 409
    assert "engine" in reply.json["detail"]


def test_memory_changed_while_its_cache_is_made_fails_the_job(engine: EngineTwin, alice: Contract) -> None:
    ids = add_facts(alice)
    job = alice.post("forms/", {"memory_ids": ids, "title": "House rules"}).json["job"]["id"]
    alice.delete(f"memories/{ids[0]}/")
    run_jobs()
    assert alice.get(f"jobs/{job}/").json["status"] == "failed"
    assert alice.get("forms/").json["results"] == []


def about(client: Contract, reference: str) -> list[str]:
    """Store the facts as memories about a data subject and two others of nobody; their ids."""
    first = client.add(FACTS[0], namespace="/team", subject=reference)["id"]
    others = [client.add(fact, namespace="/team")["id"] for fact in FACTS[1:]]
    run_jobs()
    return [first, *others]


def erase(client: Contract, reference: str) -> dict[str, Any]:
    """Erase a data subject; the receipt."""
    (subject,) = [row["id"] for row in client.get("subjects/").json["results"] if row["reference"] == reference]
    job = client.post(f"subjects/{subject}/erase/").json["job"]["id"]
    run_jobs()
    done = client.get(f"jobs/{job}/").json
    assert done["status"] == "succeeded", done
    receipt: dict[str, Any] = done["result"]["receipt"]
    return receipt


def test_erased_data_subject_takes_the_cache_and_the_receipt_counts_it(
    engine: EngineTwin, world: World, olivia: Contract
) -> None:
    form = make_cache(olivia, about(olivia, "case 17"))
    with acting(world.olivia.actor):
        row = MemoryForm.objects.get(id=form["id"])
    kept = blob_store().read(payload_name(row.tenant_id, row.id))
    assert kept is not None
    receipt = erase(olivia, "case 17")
    assert receipt["erased"]["forms"] == 1
    assert receipt["key_destroyed"]
    assert blob_store().read(payload_name(row.tenant_id, row.id)) is None
    assert engine.caches == {}
    assert olivia.get("forms/").json["results"] == []
    ask(olivia)
    assert FACTS[0] not in str(engine.asked[-1]["messages"])
    payload_store(row.tenant_id, row.id, kept)  # as in a backup of the blob store
    assert payload_open(row) is None


def test_held_cache_stays_and_the_receipt_names_it(engine: EngineTwin, world: World, olivia: Contract) -> None:
    form = make_cache(olivia, about(olivia, "case 17"))
    held = olivia.post("holds/", {"reason": "Case 17.", "memory_id": form["memory_id"]})
    assert held.status == 201, held
    for reply in (
        olivia.patch(f"forms/{form['id']}/", {"pinned": True}),
        olivia.delete(f"forms/{form['id']}/"),
    ):
        assert reply.status == 423
    receipt = erase(olivia, "case 17")
    assert receipt["kept_by_holds"]["memories"] == [form["memory_id"]]
    assert not receipt["key_destroyed"]
    with acting(world.olivia.actor):
        row = MemoryForm.objects.get(id=form["id"])
    assert payload_open(row)
    ask(olivia)
    assert used_caches(engine) == []  # nobody may read one of its parents any more
