"""Purpose binding: what is bound is read for its purposes alone, by list, search, get, versions and chat."""

import pytest

from tests.factories import World
from tests.vault.api.contract import Contract, contract
from tests.vault.outbox import run_jobs
from tests.vault.policies.making import changed, made

CLINIC = {"where": {"namespace": "/clinic"}, "purposes": ["treatment", "billing"]}
THERAPY = {"where": {"namespace": "/clinic/therapy"}, "purposes": ["treatment"]}


def seen(client: Contract, purpose: str) -> dict[str, list[str]]:
    """What each way of reading shows for this purpose."""
    headers = {"x_memory_purpose": purpose} if purpose else {}
    found = client.post("memories/search/", {"query": "notes", "top_k": 50}, **headers).json["results"]
    tagged = client.post("memories/search/", {"query": "note", "mode": "tag"}, **headers).json["results"]
    graph = client.post("memories/search/", {"query": "notes", "mode": "graph", "top_k": 50}, **headers).json["results"]
    return {
        "list": sorted(one["content"] for one in client.get("memories/", **headers).json["results"]),
        **{
            name: sorted(one["content"] for one in results)
            for name, results in (("search", found), ("tag", tagged), ("graph", graph))
        },
    }


@pytest.fixture
def notes(olivia: Contract, alice: Contract) -> dict[str, str]:
    ids = {
        path: alice.add(f"Notes in {path}.", namespace=path, tags=["note"])["id"]
        for path in ("/clinic", "/clinic/therapy", "/open")
    }
    run_jobs()
    made(olivia, "purpose", CLINIC, name="clinic")
    made(olivia, "purpose", THERAPY, name="therapy")
    return ids


@pytest.mark.parametrize(
    ("purpose", "paths"),
    [
        ("", ["/open"]),
        ("marketing", ["/open"]),
        ("billing", ["/clinic", "/open"]),
        ("treatment", ["/clinic", "/clinic/therapy", "/open"]),
    ],
)
@pytest.mark.parametrize("who", ["olivia", "alice", "bob"])
def test_every_way_of_reading_shows_just_what_the_purpose_opens(
    world: World, notes: dict[str, str], who: str, purpose: str, paths: list[str]
) -> None:
    client = contract(world, who)
    expected = [f"Notes in {path}." for path in paths]
    assert seen(client, purpose) == dict.fromkeys(("list", "search", "tag", "graph"), expected)
    for path, memory_id in notes.items():
        for address in (f"memories/{memory_id}/", f"memories/{memory_id}/versions/"):
            status = client.get(address, x_memory_purpose=purpose).status
            assert status == (200 if path in paths else 403), (address, path)


def test_a_denial_names_the_policy(notes: dict[str, str], bob: Contract, world: World) -> None:
    from governance.database import acting
    from governance.models import AuditEntry

    assert bob.get(f"memories/{notes['/clinic/therapy']}/", x_memory_purpose="billing").status == 403
    with acting(world.olivia.actor):
        row = AuditEntry.objects.filter(outcome="denied").latest("id")
    assert (row.detail["rule"], row.context["purpose"]) == ("policy:therapy@1", "billing")


def test_chat_finds_only_what_the_purpose_opens(notes: dict[str, str], alice: Contract) -> None:
    for purpose, opens in (("", {"/open"}), ("treatment", set(notes))):
        conversation = alice.post("conversations/", {}).json["id"]
        turn = alice.post(
            f"conversations/{conversation}/turns/", {"content": "Which notes?"}, x_memory_purpose=purpose
        ).json
        cited = {one["memory_id"] for one in turn["citations"]}
        assert cited <= {notes[path] for path in opens}
        assert cited


def test_nobody_changes_what_they_may_not_read(notes: dict[str, str], alice: Contract) -> None:
    address = f"memories/{notes['/clinic']}/"
    assert alice.patch(address, {"title": "x"}, if_match='"1"').status == 403
    assert alice.patch(address, {"title": "x"}, if_match='"1"', x_memory_purpose="billing").status == 200


def test_a_version_is_bound_by_what_it_was(olivia: Contract, alice: Contract) -> None:
    made(olivia, "purpose", {"where": {"sensitivities": ["restricted"]}, "purposes": ["legal"]})
    memory = alice.add("Secret once.", namespace="/team", sensitivity="restricted")["id"]
    opened = alice.patch(f"memories/{memory}/", {"sensitivity": "public"}, if_match='"1"', x_memory_purpose="legal")
    assert opened.status == 200
    numbers = [one["version"] for one in alice.get(f"memories/{memory}/versions/").json["results"]]
    assert numbers == [2]
    bound = alice.get(f"memories/{memory}/versions/", x_memory_purpose="legal").json["results"]
    assert [one["version"] for one in bound] == [2, 1]


def test_a_binding_of_everything_leaves_an_empty_answer(olivia: Contract, alice: Contract) -> None:
    alice.add("Notes.", namespace="/team", tags=["note"])
    run_jobs()
    policy = made(olivia, "purpose", {"where": {}, "purposes": ["audit"]})
    assert set(map(tuple, seen(alice, "").values())) == {()}
    assert set(map(tuple, seen(alice, "audit").values())) == {("Notes.",)}
    changed(olivia, policy, enabled=False)
    assert set(map(tuple, seen(alice, "").values())) == {("Notes.",)}


def test_equal_bindings_open_what_all_of_them_open(olivia: Contract, alice: Contract) -> None:
    made(olivia, "purpose", {"where": {"tags": ["a"]}, "purposes": ["x", "y"]}, name="a")
    made(olivia, "purpose", {"where": {"tags": ["b"]}, "purposes": ["y", "z"]}, name="b")
    alice.add("Both notes.", tags=["a", "b"])
    run_jobs()
    for purpose, count in (("x", 0), ("y", 1), ("z", 0)):
        assert alice.get("memories/", x_memory_purpose=purpose).json["count"] == count, purpose


def test_a_binding_of_one_tenant_binds_no_other(olivia: Contract, charlie: Contract) -> None:
    made(olivia, "purpose", {"where": {}, "purposes": ["audit"]})
    charlie.add("Theirs.")
    assert charlie.listed() == ["Theirs."]
