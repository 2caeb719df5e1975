"""The page of a persona or data subject: everything about it in one place, for those who may know it."""

from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract


def test_a_persona_page_shows_its_memories_readers_and_grants(world: World, alice: Contract, olivia: Contract) -> None:
    nurse = alice.post("personas/", {"name": "Night nurse", "kind": "agent", "attributes": {"tone": "calm"}}).json["id"]
    for number in range(7):
        alice.add(f"Ward {number} is quiet.", persona="Night nurse", namespace="/team")
    alice.post("memories/search/", {"query": "ward"})
    address = f"/personas/{nurse}/"
    page = signed_in(world.alice).get(address).content.decode()
    for shown in ("Ward 6 is quiet.", "Ward 2 is quiet.", ">7<", "calm", f"/memories/?persona={nurse}", "Assistant"):
        assert shown in page
    assert "Ward 1 is quiet." not in page, "only the newest"
    assert "readers/" not in page, "an editor reads no audit log"
    assert signed_in(world.alice).get(f"{address}readers/").status_code == 403
    owner = signed_in(world.olivia)
    assert f"{address}readers/" in owner.get(address).content.decode()
    readers = owner.get(f"{address}readers/").content.decode()
    assert "alice@acme.example" in readers
    granted = {"principal": {"kind": "member", "id": str(world.bob.member.id)}, "action": "read"}
    assert olivia.post("grants/", granted | {"object": {"type": "persona", "id": nurse}}).status == 201
    assert "bob" in owner.get(address).content.decode()
    held = {"principal": {"kind": "persona", "id": nurse}, "action": "read"}
    team = next(row["id"] for row in olivia.get("namespaces/").json["results"] if row["path"] == "/team")
    assert olivia.post("grants/", held | {"object": {"type": "namespace", "id": team}}).status == 201
    granted_to_it = owner.get(address).content.decode().split("What it was granted")[1]
    assert f"/access/namespace/{team}/" in granted_to_it
    assert owner.post(address, {"name": ""}).status_code == 422
    renamed = owner.post(address, {"name": "Day nurse"})
    assert (renamed.status_code, renamed["Location"]) == (303, address)
    assert signed_in(world.charlie).get(address).status_code == 404


def test_nobody_but_their_member_opens_the_page_of_a_private_persona(world: World, alice: Contract) -> None:
    own = alice.post("personas/", {"name": "Alice at home", "kind": "user"}).json["id"]
    secret = alice.add("The spare key is under the heron.", persona="Alice at home")
    assert secret["content"] in signed_in(world.alice).get(f"/personas/{own}/").content.decode()
    for other in (world.bob, world.charlie):
        assert signed_in(other).get(f"/personas/{own}/").status_code == 404


def test_a_subject_page_shows_the_memories_about_the_person_and_their_readers(
    world: World, alice: Contract, olivia: Contract
) -> None:
    subject = olivia.post("subjects/", {"reference": "customer-9"}).json["id"]
    alice.add("Customer nine ordered a heron vase.", namespace="/team", subject="customer-9")
    alice.add("The oven is hot.", namespace="/team")
    alice.post("memories/search/", {"query": "heron"})
    owner = signed_in(world.olivia)
    page = owner.get(f"/subjects/{subject}/").content.decode()
    assert "Customer nine ordered a heron vase." in page
    assert "The oven is hot." not in page
    assert "alice@acme.example" in owner.get(f"/subjects/{subject}/readers/").content.decode()
    assert signed_in(world.bob).get(f"/subjects/{subject}/readers/").status_code == 403


def test_name_leads_to_its_persona_else_its_subject_else_its_graph(
    world: World, alice: Contract, olivia: Contract
) -> None:
    nurse = alice.post("personas/", {"name": "Night nurse", "kind": "agent"}).json["id"]
    subject = olivia.post("subjects/", {"reference": "customer-9"}).json["id"]
    leads = (
        (world.bob, "Night nurse", f"/personas/{nurse}/"),
        (world.olivia, "customer-9", f"/subjects/{subject}/"),
        (world.bob, "customer-9", "/graph/?around=customer-9"),
        (world.charlie, "Night nurse", "/graph/?around=Night+nurse"),
        (world.olivia, "", "/graph/?around="),
    )
    for person, name, address in leads:
        assert signed_in(person).get("/people/", {"name": name})["Location"] == address
    memory = alice.add("Ward 3 is quiet.", namespace="/team", speaker="Night nurse")
    page = signed_in(world.bob).get(f"/memories/{memory['id']}/").content.decode()
    assert 'href="/people/?name=Night%20nurse"' in page
