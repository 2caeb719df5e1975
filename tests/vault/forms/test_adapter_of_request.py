"""An adapter that a question names, for this question alone."""

from typing import Any
from uuid import UUID

from tests.factories import World
from tests.governance.mutants import mutant
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import MISSING, Contract
from tests.vault.forms.stored import form_add
from tests.vault.forms.test_adapters import FACTS, GOOD, QUESTION, add_facts, train, used_adapter
from tests.vault.forms.test_caches import ask, engine
from tests.vault.forms.twin import EngineTwin
from tests.vault.outbox import run_jobs
from vault.forms import services
from vault.vocabulary import MemoryType

__all__ = ["engine"]


def approve(client: Contract, form: dict[str, Any]) -> str:
    assert client.post(f"forms/{form['id']}/approve/").status == 200
    return str(form["id"])


def begin(client: Contract) -> str:
    return f"conversations/{client.post('conversations/', {}).json['id']}/turns/"


def test_adapter_named_by_a_question_answers_that_question_only(engine: EngineTwin, olivia: Contract) -> None:
    engine.report = GOOD
    adapter = approve(olivia, train(olivia, add_facts(olivia)))
    place = begin(olivia)
    turn = olivia.post(place, {"content": QUESTION, "adapter": adapter})
    assert turn.status == 201, turn
    assert used_adapter(engine)
    olivia.post(place, {"content": QUESTION})
    assert used_adapter(engine) == ""
    events = olivia.stream(place, {"content": QUESTION, "adapter": adapter})
    assert events[-1].name == "done"
    assert used_adapter(engine)


def test_named_adapter_takes_the_place_of_the_mounted_one(engine: EngineTwin, olivia: Contract) -> None:
    engine.report = GOOD
    ids = add_facts(olivia)
    mounted, other = (approve(olivia, train(olivia, ids)) for _ in range(2))
    persona = olivia.get("me/").json["personas"][0]["id"]
    assert olivia.patch(f"forms/{mounted}/", {"persona": persona}).status == 200
    ask(olivia)
    usual = used_adapter(engine)
    olivia.post(begin(olivia), {"content": QUESTION, "adapter": other})
    assert usual != used_adapter(engine) != ""


def test_adapter_that_may_not_be_used_is_refused_before_the_question_is_stored(
    engine: EngineTwin, olivia: Contract, charlie: Contract
) -> None:
    engine.report = GOOD
    ids = add_facts(olivia)
    form = train(olivia, ids)
    place = begin(olivia)
    asked = {"content": QUESTION, "adapter": form["id"]}
    assert olivia.post(place, asked).status == 409  # nobody has approved it
    approve(olivia, form)
    assert charlie.post(begin(charlie), asked).status == 404
    assert olivia.post(place, asked | {"adapter": str(MISSING)}).status == 404
    changed = olivia.patch(f"memories/{ids[0]}/", {"content": "It closes at seven."}, if_match='"1"')
    assert changed.status == 200
    assert olivia.post(place, asked).status == 409
    assert olivia.delete(f"memories/{ids[0]}/?purge=true").status == 204
    assert olivia.post(place, asked).status == 404
    assert olivia.get(place).json["results"] == []


def test_reader_without_the_right_to_one_parent_names_an_adapter_only_in_a_mutant(
    engine: EngineTwin, world: World, olivia: Contract, alice: Contract
) -> None:
    ids = add_facts(olivia)
    form = form_add(
        world.olivia.actor, [UUID(memory_id) for memory_id in ids], kind=MemoryType.PARAMETER, is_approved=True
    )
    assert services.adapter_request(actor=world.alice.actor, form_id=form.id)
    denial = {"principal": {"kind": "member", "id": str(world.alice.member.id)}, "action": "read", "effect": "deny"}
    assert olivia.post("grants/", denial | {"object": {"type": "memory", "id": ids[1]}}).status == 201
    assert alice.post(begin(alice), {"content": QUESTION, "adapter": str(form.id)}).status == 404
    asked = "mine = Cube.objects.visible_to(actor).filter(type=MemoryType.PARAMETER)"
    usable = "_refuse_unapproved(row)\n        if not select_usable(actor).filter(id=row.id).exists():"
    careless = mutant(services, asked, asked.replace("visible_to(actor)", "all()"), (usable, "if row is None:"))
    assert careless.adapter_request(actor=world.alice.actor, form_id=form.id)


def test_chat_offers_the_approved_adapters_and_asks_with_the_chosen_one(
    engine: EngineTwin, world: World, olivia: Contract
) -> None:
    engine.report = GOOD
    browser = signed_in(world.olivia)
    assert "Adapter for this question" not in browser.get("/chat/").content.decode()
    adapter = approve(olivia, train(olivia, add_facts(olivia)))
    page = browser.get("/chat/").content.decode()
    assert "Adapter for this question" in page
    assert f'value="{adapter}"' in page
    assert browser.post("/chat/", {"content": QUESTION, "adapter": adapter}).status_code == 303
    assert used_adapter(engine)
    assert FACTS[0] not in str(engine.asked[-1]["messages"])


def test_dry_run_of_an_adapter_tells_the_seconds_of_its_training(engine: EngineTwin, olivia: Contract) -> None:
    body = {"memory_ids": add_facts(olivia), "title": "Knows our house", "kind": "parameter"}
    estimate = olivia.post("forms/?dry_run=true", body).json["estimate"]
    assert (estimate["form"], estimate["bytes"]) == ("adapter", 0)
    assert estimate["seconds"] > 60
    assert estimate["cache_seconds"] < estimate["text_seconds"]
    run_jobs()
    assert olivia.get("forms/").json["results"] == []
