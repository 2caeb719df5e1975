"""Caches and adapters that are mounted on a task: used by calls that name it, with the rights of their readers."""

from typing import Any
from uuid import UUID

from governance.database import acting
from governance.models import AuditEntry
from governance.vocabulary import Verb
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract
from tests.vault.forms.stored import form_add
from tests.vault.forms.test_caches import FACTS, QUESTION, add_facts, engine, make_cache, used_caches
from tests.vault.forms.twin import EngineTwin
from tests.vault.outbox import run_jobs
from vault.models import MemoryForm
from vault.vocabulary import MemoryType

__all__ = ["engine"]
TASK = "autumn exhibition"


def ask_for(client: Contract, task: str = "") -> dict[str, Any]:
    place = f"conversations/{client.post('conversations/', {}).json['id']}/turns/"
    turn = client.post(place, {"content": QUESTION}, **({"X-Memory-Task": task} if task else {}))
    assert turn.status == 201, turn
    return dict(turn.json)


def mount(client: Contract, form: dict[str, Any], task: str) -> None:
    changed = client.patch(f"forms/{form['id']}/", {"persona": None, "task": task})
    assert (changed.status, changed.json["task"], changed.json["persona"]) == (200, task, None)


def test_cache_of_a_task_is_used_only_by_calls_that_name_the_task(engine: EngineTwin, alice: Contract) -> None:
    form = make_cache(alice, add_facts(alice))
    mount(alice, form, TASK)
    assert ask_for(alice, TASK)["usage"]["cached_tokens"] > 0
    for task in ("", "spring exhibition"):
        ask_for(alice, task)
        assert used_caches(engine) == []
    mount(alice, form, "")
    ask_for(alice, TASK)
    assert used_caches(engine) == []


def test_caches_of_the_persona_and_of_the_task_are_put_together(engine: EngineTwin, alice: Contract) -> None:
    ids = add_facts(alice)
    make_cache(alice, ids[:2])
    of_task = make_cache(alice, ids[2:])
    mount(alice, of_task, TASK)
    assert alice.patch(f"forms/{of_task['id']}/", {"composition": "rotated"}).status == 200
    ask_for(alice, TASK)
    assert len(used_caches(engine)) == 2
    ask_for(alice)
    assert len(used_caches(engine)) == 1


def test_reader_without_the_right_to_a_parent_never_gets_the_cache_of_a_task(
    engine: EngineTwin, world: World, olivia: Contract, alice: Contract, charlie: Contract
) -> None:
    assert olivia.post("namespaces/", {"path": "/team/rules", "kind": "shared"}).status == 201
    ids = add_facts(olivia, namespace="/team/rules")
    mount(olivia, make_cache(olivia, ids), TASK)
    ask_for(alice, TASK)
    assert len(used_caches(engine)) == 1
    denial = {"principal": {"kind": "member", "id": str(world.alice.member.id)}, "action": "read", "effect": "deny"}
    assert olivia.post("grants/", {**denial, "object": {"type": "memory", "id": ids[0]}}).status == 201
    for client in (alice, charlie):
        ask_for(client, TASK)
        assert used_caches(engine) == []
        assert FACTS[0] not in str(engine.asked[-1]["messages"])


def test_changed_parent_takes_the_cache_from_the_task_at_once(engine: EngineTwin, alice: Contract) -> None:
    ids = add_facts(alice)
    mount(alice, make_cache(alice, ids), TASK)
    assert alice.patch(f"memories/{ids[0]}/", {"content": "Bags stay."}, **{"If-Match": '"1"'}).status == 200
    ask_for(alice, TASK)
    assert used_caches(engine) == []


def test_adapter_is_mounted_on_a_task_once_it_is_approved(engine: EngineTwin, world: World, alice: Contract) -> None:
    memories = [UUID(each) for each in add_facts(alice)]
    for is_approved, status in ((False, 409), (True, 200)):
        form = form_add(world.alice.actor, memories, kind=MemoryType.PARAMETER, content=b"[]", is_approved=is_approved)
        assert alice.patch(f"forms/{form.id}/", {"task": TASK}).status == status
    ask_for(alice, TASK)
    assert engine.asked[-1]["adapter"]
    ask_for(alice)
    assert engine.asked[-1]["adapter"] == ""


def test_task_is_sealed_audited_and_set_by_those_who_may_change_the_cache(
    engine: EngineTwin, world: World, alice: Contract, bob: Contract, charlie: Contract
) -> None:
    form = make_cache(alice, add_facts(alice))
    for client in (bob, charlie):
        assert client.patch(f"forms/{form['id']}/", {"task": TASK}).status in {403, 404}
    assert alice.patch(f"forms/{form['id']}/", {"task": "x" * 201}).status == 400
    with acting(world.alice.actor):
        assert not MemoryForm.objects.exclude(task_token=None).exists()
    mount(alice, form, TASK)
    with acting(world.alice.actor):
        row = MemoryForm.objects.get(id=form["id"])
        entry = AuditEntry.objects.filter(verb=Verb.FORM_CHANGED).latest("id")
    assert TASK.encode() not in bytes(row.sealed_task)
    assert (entry.detail["on_task"], TASK in str(entry.detail)) == (True, False)


def test_task_is_named_and_changed_on_the_page(engine: EngineTwin, world: World, alice: Contract) -> None:
    form = make_cache(alice, add_facts(alice))
    browser = signed_in(world.alice)
    change = f"/forms/{form['id']}/change/"
    refused = browser.post(change, {"action": "task", "task": "x" * 201})
    assert (refused.status_code, f'value="{"x" * 201}"' in refused.content.decode()) == (422, True)
    assert f'id="task-{form["id"]}_error"' in refused.content.decode()
    assert browser.post(change, {"action": "task", "task": f" {TASK} "}).status_code == 303
    assert f"Mounted on alice. Mounted on the task {TASK}." in browser.get("/forms/").content.decode()
    assert alice.patch(f"forms/{form['id']}/", {"composition": "rotated"}).status == 200
    assert browser.post(change, {"action": "anew"}).status_code == 303
    run_jobs()
    newest = alice.get("forms/").json["results"][0]
    assert (newest["id"] != form["id"], newest["task"], newest["composition"]) == (True, TASK, "rotated")
    assert browser.post(f"/forms/{newest['id']}/change/", {"action": "erase", "confirmed": "yes"}).status_code == 303
    assert browser.post(change, {"action": "unmount"}).status_code == 303
    assert browser.post(change, {"action": "task", "task": ""}).status_code == 303
    assert "Not mounted on a persona or a task." in browser.get("/forms/").content.decode()
