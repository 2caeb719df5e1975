"""Deliberate breaks of what keeps a cache from those who may not have it: each shows."""

from types import ModuleType
from uuid import UUID

from governance.actor import Actor
from governance.database import acting
from tests.factories import World
from tests.governance.mutants import mutant
from tests.vault.api.contract import Contract
from tests.vault.forms.stored import form_add
from tests.vault.outbox import run_jobs
from vault.conversion import jobs
from vault.forms import selectors
from vault.forms.payloads import payload_name
from vault.providers.registry import blob_store

REGISTRATION = "@handler(Topic.FORM_BUILD, permission=Permission.MEMORY_CREATE, limit=LONGEST)\n"


def count_usable(module: ModuleType, actor: Actor) -> int:
    with acting(actor):
        return int(module.select_usable(actor).count())


def test_reader_without_the_right_to_one_parent_gets_a_cache_only_from_a_mutant(
    world: World, olivia: Contract, alice: Contract
) -> None:
    ids = [olivia.add(f"Rule {number} of the house.", namespace="/team")["id"] for number in range(2)]
    run_jobs()
    form_add(world.olivia.actor, [UUID(memory_id) for memory_id in ids])
    assert count_usable(selectors, world.alice.actor) == 1
    denial = {"principal": {"kind": "member", "id": str(world.alice.member.id)}, "action": "read", "effect": "deny"}
    assert olivia.post("grants/", denial | {"object": {"type": "memory", "id": ids[1]}}).status == 201
    assert count_usable(selectors, world.alice.actor) == 0
    careless = mutant(selectors, "Cube.objects.visible_to(actor)", "Cube.objects.filter(tenant_id=actor.tenant_id)")
    assert count_usable(careless, world.alice.actor) == 1


def test_changed_parent_leaves_a_cache_usable_only_in_a_mutant(world: World, olivia: Contract) -> None:
    memory = olivia.add("The museum closes at six.", namespace="/team")["id"]
    run_jobs()
    form_add(world.olivia.actor, [UUID(memory)])
    assert olivia.patch(f"memories/{memory}/", {"content": "It closes at seven."}, if_match='"1"').status == 200
    assert count_usable(selectors, world.olivia.actor) == 0
    careless = mutant(selectors, ".exclude(is_stale())", "")
    assert count_usable(careless, world.olivia.actor) == 1


def test_erased_parent_leaves_the_payload_only_where_it_is_no_extract(world: World, olivia: Contract) -> None:
    careless = mutant(jobs, "SourceKind.EXTRACT", "SourceKind.TEXT", (REGISTRATION, ""))
    names = []
    for module in (jobs, careless):
        memory = olivia.add("The museum closes at six.", namespace="/team", allow_duplicates=True)["id"]
        run_jobs()
        form = form_add(world.olivia.actor, [UUID(memory)], store=module.form_store)
        names.append(payload_name(form.tenant_id, form.id))
        assert olivia.delete(f"memories/{memory}/?purge=true").status == 204
        run_jobs()
    assert [blob_store().read(name) is None for name in names] == [True, False]
