"""namespaces/: made, changed and moved by who may; a quota refuses; grants, memories and paths follow a move."""

from governance.database import acting
from governance.models import AuditEntry
from governance.vocabulary import Verb
from tests.factories import World
from tests.harness.cases import each_case
from tests.vault.api.contract import MISSING, Contract, fields_at_fault
from tests.vault.outbox import run_jobs
from vault.models import Namespace
from vault.overview.counts import counts_ask


def paths(client: Contract) -> list[str]:
    return [row["path"] for row in client.get("namespaces/").json["results"]]


def create_namespace(client: Contract, **body: object) -> str:
    reply = client.post("namespaces/", body)
    assert reply.status == 201, reply
    return str(reply.json["id"])


def test_editor_makes_a_namespace_and_others_are_refused(alice: Contract, bob: Contract, charlie: Contract) -> None:
    reply = alice.post("namespaces/", {"path": "/clinic", "kind": "expert", "quota": 10})
    assert (reply.status, reply.json["kind"], reply.json["quota"]) == (201, "expert", 10)
    assert reply.json["owner"]["name"] == "alice"
    assert bob.post("namespaces/", {"path": "/bobs"}).status == 403
    address = f"namespaces/{reply.json['id']}/"
    assert bob.get(address).json["rights"] == ["read"]
    assert bob.patch(address, {"read_only": True}).status == 403
    assert charlie.get(address).status == 404
    assert charlie.patch(address, {"read_only": True}).status == 404
    assert alice.get(f"namespaces/{MISSING}/").status == 404
    assert alice.post("namespaces/", {"path": "/clinic"}).status == 409


@each_case(
    ("body", "field"),
    [
        ({"path": "clinic"}, "path"),
        ({"path": "/users/alice/notes", "kind": "shared"}, "kind"),
        ({"path": "/clinic", "kind": "private"}, "kind"),
        ({"path": "/clinic", "owner": str(MISSING)}, "owner"),
        ({"path": "/clinic", "quota": 0}, "quota"),
    ],
)
def test_impossible_namespace_is_400(olivia: Contract, body: dict[str, object], field: str) -> None:
    assert fields_at_fault(olivia.post("namespaces/", body)) == {field}


def test_private_namespace_lies_in_the_home_of_its_maker(alice: Contract, bob: Contract, world: World) -> None:
    alice.add("Mine.")
    assert alice.get(f"namespaces/{create_namespace(alice, path='/users/alice/notes')}/").json["kind"] == "private"
    other = world.client("olivia").post("memories/", {"content": "Hers."})
    assert other.status == 201
    assert alice.post("namespaces/", {"path": "/users/olivia/notes"}).status == 403


def test_owner_of_another_member_is_named_by_who_manages_grants(
    world: World, olivia: Contract, alice: Contract
) -> None:
    bob = str(world.bob.member.id)
    assert alice.post("namespaces/", {"path": "/clinic", "owner": bob}).status == 403
    assert olivia.get(f"namespaces/{create_namespace(olivia, path='/clinic', owner=bob)}/").json["owner"]["id"] == bob


def test_changes_are_recorded_and_read_only_stops_writers(world: World, alice: Contract) -> None:
    address = f"namespaces/{create_namespace(alice, path='/team')}/"
    alice.add("Before.", namespace="/team")
    changed = alice.patch(address, {"read_only": True, "quota": 5, "kind": "expert"}).json
    assert (changed["read_only"], changed["quota"], changed["kind"]) == (True, 5, "expert")
    assert alice.post("memories/", {"content": "After.", "namespace": "/team"}).status == 403
    assert alice.patch(address, {"quota": None, "read_only": False}).json["quota"] is None
    assert fields_at_fault(alice.patch(address, {"kind": "pipeline_cache"})) == {"kind"}
    with acting(world.alice.actor):
        assert AuditEntry.objects.filter(verb=Verb.NAMESPACE_CHANGED).count() == 2


def test_quota_refuses_adding_moving_and_restoring(alice: Contract) -> None:
    create_namespace(alice, path="/small", quota=2)
    first = alice.add("One.", namespace="/small")["id"]
    alice.add("Two.", namespace="/small")
    full = alice.post("memories/", {"content": "Three.", "namespace": "/small"})
    assert (full.status, full.code) == (429, "quota_exceeded")
    outside = alice.add("Outside.", namespace="/large")["id"]
    assert alice.post(f"memories/{outside}/move/", {"namespace": "/small"}).status == 429
    assert alice.delete(f"memories/{first}/").status == 204
    assert alice.post(f"memories/{outside}/move/", {"namespace": "/small"}).status == 200
    assert alice.post(f"memories/{first}/restore/").status == 429


def test_move_takes_memories_and_grants_along(world: World, olivia: Contract, alice: Contract, bob: Contract) -> None:
    root = create_namespace(alice, path="/team")
    below = create_namespace(alice, path="/team/notes", kind="expert")
    memory = alice.add("The heron nests.", namespace="/team/notes")["id"]
    principal = {"kind": "member", "id": str(world.bob.member.id)}
    grant = {"principal": principal, "object": {"type": "namespace", "path": "/team/notes"}, "action": "write"}
    assert olivia.post("grants/", grant).status == 201
    dry = alice.post(f"namespaces/{root}/move/?dry_run=true", {"path": "/old/team"}).json
    assert dry["namespaces"] == [
        {"id": root, "before": "/team", "after": "/old/team"},
        {"id": below, "before": "/team/notes", "after": "/old/team/notes"},
    ]
    assert paths(alice) == ["/team", "/team/notes"]
    job = alice.post(f"namespaces/{root}/move/", {"path": "/old/team"})
    assert job.status == 202
    run_jobs()
    assert alice.get(f"jobs/{job.json['job']['id']}/").json["result"] == {"moved": 2}
    assert paths(alice) == ["/old/team", "/old/team/notes"]
    moved = alice.get(f"memories/{memory}/").json
    assert (moved["namespace"]["path"], moved["version"]) == ("/old/team/notes", 1)
    assert bob.get(f"namespaces/{below}/").json["rights"] == ["read", "write"]
    with acting(world.alice.actor):
        detail = AuditEntry.objects.get(verb=Verb.NAMESPACE_MOVED).detail
    assert detail == {"from": "/team", "to": "/old/team"}


def test_move_is_refused_where_it_cannot_be(alice: Contract, bob: Contract, charlie: Contract, world: World) -> None:
    alice.add("Mine.")
    root = create_namespace(alice, path="/team")
    create_namespace(alice, path="/taken")
    address = f"namespaces/{root}/move/"
    assert bob.post(address, {"path": "/bobs"}).status == 403
    assert charlie.post(address, {"path": "/charlies"}).status == 404
    assert alice.post(address, {"path": "/taken"}).status == 409
    for path in ("/team/below", "/users/alice/team", "team"):
        assert fields_at_fault(alice.post(address, {"path": path})) == {"path"}
    notes = create_namespace(alice, path="/users/alice/notes")
    assert fields_at_fault(alice.post(f"namespaces/{notes}/move/", {"path": "/notes"})) == {"path"}
    with acting(world.alice.actor):
        home = Namespace.objects.get(path="/users/alice").id
    assert fields_at_fault(alice.post(f"namespaces/{home}/move/", {"path": "/users/alice/home"})) == {"path"}


def test_subtree_with_one_that_is_not_ones_own_stays(olivia: Contract, alice: Contract) -> None:
    root = create_namespace(alice, path="/team")
    create_namespace(olivia, path="/team/board")
    assert alice.post(f"namespaces/{root}/move/", {"path": "/old"}).status == 403
    assert olivia.post(f"namespaces/{root}/move/", {"path": "/old"}).status == 202


def test_counts_follow_the_job_that_keeps_them(alice: Contract) -> None:
    create_namespace(alice, path="/team")
    alice.add("One.", namespace="/team")
    run_jobs()
    counts_ask()
    run_jobs()
    assert [row["count"] for row in alice.get("namespaces/?path=/team").json["results"]] == [1]


def test_empty_namespace_is_deleted_and_its_path_is_free_again(
    world: World, olivia: Contract, alice: Contract, bob: Contract, charlie: Contract
) -> None:
    typo = create_namespace(alice, path="/typo")
    address = f"namespaces/{typo}/"
    memory = alice.add("The heron nests.", namespace="/typo")["id"]
    gone = alice.add("Gone.", namespace="/typo")["id"]
    create_namespace(alice, path="/typo/below")
    alice.delete(f"memories/{gone}/")
    principal = {"kind": "member", "id": str(world.bob.member.id)}
    ended = {"principal": principal, "object": {"type": "namespace", "id": typo}, "action": "govern"}
    assert olivia.post("grants/", ended | {"conditions": {"not_after": "2020-01-01T00:00:00Z"}}).status == 201
    assert (bob.delete(address).status, charlie.delete(address).status) == (403, 404), "the grant has expired"
    for asked in ("", "?dry_run=true"):
        refused = alice.delete(address + asked)
        assert (refused.status, refused.code) == (409, "namespace_not_empty")
        counts = {fault["field"]: fault["message"] for fault in refused.json["errors"]}
        assert counts == {"memories": "1", "restorable": "1", "namespaces": "1"}
        assert "Memories: 1, " in refused.json["detail"]
    assert alice.post(f"memories/{memory}/move/", {"namespace": "/right"}).status == 200
    assert alice.delete(f"memories/{gone}/?purge=true").status == 204
    (below,) = [row["id"] for row in alice.get("namespaces/?path=/typo/below").json["results"]]
    assert alice.delete(f"namespaces/{below}/").status == 204
    assert alice.post("mounts/", {"namespace": "/typo", "task_id": "ticket-17"}).status == 201
    assert alice.delete(f"{address}?dry_run=true").json == {"dry_run": True, "count": 1, "ids": [typo]}
    assert alice.delete(address).status == 204
    assert [alice.get(address).status, alice.delete(address).status] == [404, 404]
    assert "/typo" not in "".join(paths(alice))
    assert alice.get("mounts/").json["results"] == []
    facets = alice.get("memories/facets/").json["namespace"]
    assert [row["value"] for row in facets if "typo" in row["value"]] == []
    versions = alice.get(f"memories/{memory}/versions/").json["results"]
    assert [version["content"] for version in versions] == ["The heron nests."] * 2, "its past stays readable"
    assert create_namespace(alice, path="/typo") != typo
    assert bob.get("memories/?namespace=/typo").json["results"] == []
    with acting(world.alice.actor):
        entries = AuditEntry.objects.filter(verb=Verb.NAMESPACE_DELETED).order_by("id")
        assert [entry.detail for entry in entries] == [{"path": "/typo/below"}, {"path": "/typo"}]
        assert AuditEntry.objects.filter(verb=Verb.GRANT_REVOKED).count() == 1


def test_home_of_a_member_is_not_deleted(world: World, alice: Contract) -> None:
    memory = alice.add("Mine.")
    assert alice.delete(f"memories/{memory['id']}/?purge=true").status == 204
    refused = alice.delete(f"namespaces/{memory['namespace']['id']}/")
    assert (refused.status, refused.code) == (409, "conflict")
    notes = create_namespace(alice, path="/users/alice/notes")
    assert world.client("bob").delete(f"namespaces/{notes}/").status == 403
    assert alice.delete(f"namespaces/{notes}/").status == 204
