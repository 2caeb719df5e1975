"""namespaces/: where memory lies, for each reader what they may read."""

from tests.factories import World
from tests.vault.api.contract import Contract, fields_at_fault
from tests.vault.outbox import run_jobs
from vault.overview.counts import counts_ask


def test_namespaces_are_listed_by_path_with_parent_count_and_rights(
    world: World, alice: Contract, bob: Contract, charlie: Contract
) -> None:
    for path in ("/team", "/team/notes/2026", "/open"):
        alice.add(f"In {path}.", namespace=path)
    alice.add("Mine.")
    run_jobs()
    counts_ask()
    run_jobs()
    rows = {row["path"]: row for row in alice.get("namespaces/").json["results"]}
    assert list(rows) == ["/open", "/team", "/team/notes/2026", "/users/alice"]
    assert rows["/team/notes/2026"]["parent"] == rows["/team"]["id"]
    assert rows["/team"]["parent"] is None
    assert {path: row["count"] for path, row in rows.items()} == dict.fromkeys(rows, 1)
    assert rows["/users/alice"]["owner"]["id"] == str(world.alice.member.id)
    assert (rows["/team"]["kind"], rows["/users/alice"]["kind"]) == ("shared", "private")
    assert {"read", "write"} <= set(rows["/team"]["rights"])
    below = alice.get("namespaces/?path=/team").json
    assert [row["path"] for row in below["results"]] == ["/team", "/team/notes/2026"]
    seen = {row["path"]: row["rights"] for row in bob.get("namespaces/").json["results"]}
    assert list(seen) == ["/open", "/team", "/team/notes/2026"]
    assert seen["/team"] == ["read"]
    assert charlie.get("namespaces/").json["count"] == 0
    assert fields_at_fault(alice.get("namespaces/?path=team")) == {"path"}


def test_a_grant_names_a_namespace_by_its_path(olivia: Contract, alice: Contract, bob: Contract, world: World) -> None:
    alice.add("In /team.", namespace="/team")
    principal = {"kind": "member", "id": str(world.bob.member.id)}
    body = {"principal": principal, "object": {"type": "namespace", "path": "/team"}, "action": "write"}
    made = olivia.post("grants/", body)
    assert made.status == 201, made
    by_path = {row["path"]: row["id"] for row in olivia.get("namespaces/").json["results"]}
    assert made.json["object"]["id"] == by_path["/team"]
    checked = olivia.post("grants/check/", body)
    assert checked.json["allowed"] is True
    for object_, status in (({"type": "namespace", "path": "/nowhere"}, 404), ({"type": "namespace"}, 400)):
        assert olivia.post("grants/", body | {"object": object_}).status == status
    hidden = alice.add("Mine.")["namespace"]["path"]
    assert bob.post("grants/", body | {"object": {"type": "namespace", "path": hidden}}).status == 404
