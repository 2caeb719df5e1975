"""GET grants/: whose grants one sees, page by page, at a price that does not grow."""

from tests.factories import World
from tests.governance.access.grants.test_grants import FACT, give_grant, grant_body
from tests.governance.personas.test_personas import create_persona
from tests.governance.tenants.test_bound_keys import create_bound_client
from tests.vault.api.contract import Contract, fields_at_fault
from tests.vault.cubes.test_query_counts import count_queries

SITE = "http://testserver"


def ids(client: Contract, asked: str = "") -> list[str]:
    reply = client.get(f"grants/{asked}")
    assert reply.status == 200, reply
    return [row["id"] for row in reply.json["results"]]


def test_who_manages_sees_all_and_others_their_own(
    world: World, olivia: Contract, alice: Contract, bob: Contract, ada: Contract, charlie: Contract
) -> None:
    memory = alice.add(FACT)
    first = give_grant(alice, world, "bob", "memory", memory["id"])["id"]
    second = give_grant(olivia, world, "ada", "namespace", memory["namespace"]["id"])["id"]
    assert ids(olivia) == [second, first]
    assert ids(bob) == [first]
    assert ids(ada) == [second]
    assert ids(alice) == [first]  # what she gave
    assert ids(alice, f"?object_type=namespace&object_id={memory['namespace']['id']}") == [second]
    assert ids(bob, f"?object_type=namespace&object_id={memory['namespace']['id']}") == []
    assert ids(charlie) == []
    assert bob.get(f"grants/{first}/").json["object"] == {"type": "memory", "id": memory["id"]}
    assert bob.get(f"grants/{second}/").status == 403
    assert charlie.get(f"grants/{first}/").status == 404


def test_filters_filter_count_and_results(world: World, olivia: Contract, alice: Contract) -> None:
    memory = alice.add(FACT)
    give_grant(alice, world, "bob", "memory", memory["id"])
    give_grant(alice, world, "ada", "namespace", memory["namespace"]["id"])
    for asked, count in {
        "object_type=memory": 1,
        "object_type=persona": 0,
        "principal_kind=member": 2,
        "principal_kind=role": 0,
        f"principal_kind=member&principal_id={world.bob.member.id}": 1,
        f"object_type=memory&object_id={memory['id']}": 1,
    }.items():
        reply = olivia.get(f"grants/?{asked}").json
        assert reply["count"] == len(reply["results"]) == count, asked
    for asked, field in {
        "object_type=planet": "object_type",
        "object_type=memory&object_id=x": "object_id",
        f"object_id={memory['id']}": "object_type",
        "principal_kind=planet": "principal_kind",
        "principal_id=x": "principal_kind",
        "page_size=0": "page_size",
        "cursor=nonsense": "cursor",
        "speling=1": "speling",
    }.items():
        assert fields_at_fault(olivia.get(f"grants/?{asked}")) == {field}, asked


def test_pages_of_several_tables_miss_nothing_and_lead_back(world: World, olivia: Contract, alice: Contract) -> None:
    given_ids = []
    for number in range(7):
        memory = alice.add(f"Number {number}.", namespace=f"/place/{number}")
        kind, object_id = ("memory", memory["id"]) if number % 2 else ("namespace", memory["namespace"]["id"])
        given_ids.append(give_grant(olivia, world, "bob", kind, object_id)["id"])
    page = olivia.get("grants/?page_size=3").json
    seen, pages = [grant["id"] for grant in page["results"]], [page]
    assert (page["count"], page["previous"]) == (7, None)
    while pages[-1]["next"]:
        pages.append(olivia.get(pages[-1]["next"].removeprefix(SITE)).json)
        seen += [grant["id"] for grant in pages[-1]["results"]]
    assert seen == given_ids[::-1]
    back = olivia.get(pages[-1]["previous"].removeprefix(SITE)).json
    assert back["results"] == pages[-2]["results"]
    first = olivia.get(back["previous"].removeprefix(SITE)).json
    assert (first["results"], first["previous"]) == (pages[0]["results"], None)


def test_a_list_costs_the_same_for_one_and_for_many(world: World, olivia: Contract, alice: Contract) -> None:
    for number in range(20):
        memory = alice.add(f"Number {number}.")
        give_grant(alice, world, "bob", "memory", memory["id"])
    assert olivia.post("grants/", grant_body(world, "ada", "memory", memory["id"])).status == 201
    count = count_queries(lambda: olivia.get("grants/?page_size=1"))
    assert count_queries(lambda: olivia.get("grants/?page_size=20")) == count
    assert count <= 18


def test_a_bound_key_hears_of_no_grant_outside_of_its_bonds(
    world: World, olivia: Contract, alice: Contract, bob: Contract
) -> None:
    inside, outside = alice.add(FACT, namespace="/team"), alice.add(FACT, namespace="/other")
    work, home = (create_persona(alice, name, kind="agent") for name in ("Helper", "Other"))
    within = {
        give_grant(alice, world, "bob", "memory", inside["id"])["id"],
        give_grant(olivia, world, "bob", "namespace", inside["namespace"]["id"])["id"],
    }
    of_memory = give_grant(alice, world, "bob", "memory", outside["id"])["id"]
    of_place = give_grant(olivia, world, "bob", "namespace", outside["namespace"]["id"])["id"]
    of_persona, of_other = (give_grant(alice, world, "bob", "persona", persona)["id"] for persona in (work, home))
    assert set(ids(bob)) == within | {of_memory, of_place, of_persona, of_other}
    key = create_bound_client(world, world.bob, namespaces=("/team",))
    assert set(ids(key)) == within | {of_persona, of_other}
    assert {key.get(f"grants/{grant}/").status for grant in within} == {200}
    assert (key.get(f"grants/{of_memory}/").status, key.get(f"grants/{of_place}/").status) == (404, 403)
    speaking = create_bound_client(world, world.bob, namespaces=("/team",), persona=work)
    assert [grant for grant in ids(speaking) if grant not in within] == [of_persona]
    assert not {grant["id"] for grant in speaking.get("grants/?object_type=memory").json["results"]}  # of no persona
