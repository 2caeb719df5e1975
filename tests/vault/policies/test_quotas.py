"""Quotas: never more than they say, however many ask at once; what is deleted or expires frees its place."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from django.db import connection

from governance.database import acting
from governance.errors import QuotaExceeded
from governance.models import AuditEntry, Usage
from governance.vocabulary import Measure, Verb
from tests.factories import World
from tests.governance.tables import read_all_rows
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract, contract, fields_at_fault
from tests.vault.outbox import run_jobs
from vault.content.drafts import CubeDraft
from vault.cubes.services import cubes_add
from vault.models import Cube
from vault.overview.counts import counts_ask
from vault.policies.selectors import quotas_list

Superuser = Callable[[], psycopg.Connection]
THREADS = 16


def set_quota(client: Contract, kind: str = "tenant", holder: object = None, **limits: int | None) -> None:
    reply = client.send("PUT", "quotas/", {"holder": {"kind": kind, "id": holder and str(holder)}, "limits": limits})
    assert reply.status == 200, reply


def read_usage(client: Contract, kind: str = "tenant") -> dict[str, Any]:
    rows = client.get("quotas/").json["results"]
    found: dict[str, Any] = next(row["used"] for row in rows if row["holder"]["kind"] == kind)
    return found


def is_refused(reply: Any) -> bool:
    return (reply.status, reply.json.get("code")) == (429, "quota_exceeded")


@pytest.mark.parametrize("kind", ["tenant", "member", "api_key"])
def test_a_quota_of_memories_is_the_most_that_there_are(olivia: Contract, alice: Contract, kind: str) -> None:
    alice.add("Before.")
    set_quota(olivia, kind, memories=3)
    alice.add("Second.")
    full = alice.post("memories/bulk/", {"items": [{"content": "Third."}, {"content": "Fourth."}]})
    assert is_refused(full)
    assert "Retry-After" not in full.headers  # waiting frees no place
    assert read_usage(olivia if kind == "tenant" else alice, kind)["memories"] == 2
    alice.add("Third.")
    assert is_refused(alice.post("memories/", {"content": "Fourth."}))
    assert read_usage(olivia if kind == "tenant" else alice, kind)["memories"] == 3
    assert alice.post("memories/", {"content": "Third."}).status == 200  # what is there already is no more
    if kind != "tenant":
        assert olivia.add("Mine.")


def test_a_refusal_leaves_nothing(olivia: Contract, alice: Contract, superuser: Superuser) -> None:
    alice.add("One.")
    set_quota(olivia, memories=1)
    before = read_all_rows(superuser())
    assert is_refused(alice.post("memories/", {"content": "Two.", "namespace": "/new", "subject": "new"}))
    after = read_all_rows(superuser())
    assert after == before


def storm(world: World, count: int) -> int:
    """Add `count` memories at once; return how many were stored."""

    def add(number: int) -> bool:
        try:
            cubes_add(actor=world.alice.actor, drafts=[CubeDraft(content=f"Number {number}.", namespace="/team")])
        except QuotaExceeded:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(THREADS) as pool:
        return sum(pool.map(add, range(count)))


def test_many_at_once_store_exactly_the_quota(world: World, olivia: Contract, full_size: bool) -> None:
    quota = 1_000 if full_size else 100
    set_quota(olivia, memories=quota)
    assert storm(world, 2 * quota) == quota
    with acting(world.alice.actor):
        assert Cube.objects.count() == quota
        assert Usage.objects.get().used == quota


def test_a_count_that_forgets_would_show(world: World, olivia: Contract, superuser: Superuser) -> None:
    """The mutant: a row of usage that loses what was counted lets more pass than the quota."""
    superuser().execute(
        "CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.used := 0; RETURN NEW; END'"
    )
    superuser().execute(
        "CREATE TRIGGER forget BEFORE UPDATE ON governance_usage FOR EACH ROW EXECUTE FUNCTION forget()"
    )
    set_quota(olivia, memories=10)
    assert storm(world, 20) == 20


def test_bytes_are_those_of_every_version(olivia: Contract, alice: Contract) -> None:
    memory = alice.add("one two " * 125)["id"]
    first = read_usage(olivia)["bytes"]
    assert 1000 < first < 1500  # the words, what is said of them, and what sealing adds
    set_quota(olivia, bytes=2 * first + 200)
    assert alice.patch(f"memories/{memory}/", {"title": "y"}, if_match='"1"').status == 200
    assert 2 * first - 100 < read_usage(olivia)["bytes"] <= 2 * first + 200
    assert is_refused(alice.patch(f"memories/{memory}/", {"title": "z"}, if_match='"2"'))
    assert alice.get(f"memories/{memory}/").json["version"] == 2
    assert is_refused(alice.post("memories/", {"content": "three four " * 100}))


def test_what_is_deleted_or_has_expired_frees_its_place(world: World, olivia: Contract, alice: Contract) -> None:
    set_quota(olivia, memories=2)
    first, second = alice.add("One.")["id"], alice.add("Two.", ttl_seconds=60)["id"]
    assert is_refused(alice.post("memories/", {"content": "Three."}))
    assert alice.delete(f"memories/{first}/").status == 204
    alice.add("Three.")
    assert is_refused(alice.post(f"memories/{first}/restore/"))
    with acting(world.alice.actor):
        Cube.objects.filter(id=second).update(expires_at="2020-01-01T00:00:00Z")
    assert alice.post(f"memories/{first}/restore/").status == 200
    assert is_refused(alice.post("memories/", {"content": "Four."}))


def test_what_is_over_a_lowered_quota_stays_and_can_be_edited(olivia: Contract, alice: Contract) -> None:
    memory = alice.add("One.")["id"]
    alice.add("Two.")
    set_quota(olivia, memories=1)
    assert alice.patch(f"memories/{memory}/", {"title": "still"}, if_match='"1"').status == 200
    assert is_refused(alice.post("memories/", {"content": "Three."}))


def test_a_members_own_quota_stands_before_that_of_each(world: World, olivia: Contract, alice: Contract) -> None:
    set_quota(olivia, "member", memories=1)
    set_quota(olivia, "member", world.alice.member.id, memories=2)
    alice.add("One.")
    alice.add("Two.")
    assert is_refused(alice.post("memories/", {"content": "Three."}))
    olivia.add("One.", namespace="/team")
    assert is_refused(olivia.post("memories/", {"content": "Two.", "namespace": "/team"}))


def test_a_quota_that_was_lifted_and_set_again_counts_what_came_between(olivia: Contract, alice: Contract) -> None:
    set_quota(olivia, memories=2)
    alice.add("One.")
    set_quota(olivia)
    for text in ("Two.", "Three."):
        alice.add(text)
    set_quota(olivia, memories=4)
    alice.add("Four.")
    assert is_refused(alice.post("memories/", {"content": "Five."}))


def test_a_quota_of_one_tenant_counts_no_other(olivia: Contract, alice: Contract, charlie: Contract) -> None:
    set_quota(olivia, memories=0)
    charlie.add("Theirs.")
    assert is_refused(alice.post("memories/", {"content": "Ours."}))


def test_where_no_quota_is_set_nothing_is_counted(world: World, alice: Contract) -> None:
    alice.add("One.")
    with acting(world.alice.actor):
        assert not Usage.objects.exists()


@pytest.mark.parametrize("who", ["alice", "bob", "ada"])
def test_who_does_not_govern_sets_none_and_leaves_only_the_denial(world: World, who: str, superuser: Superuser) -> None:
    before = read_all_rows(superuser())
    body = {"holder": {"kind": "tenant"}, "limits": {"memories": 1}}
    assert contract(world, who).send("PUT", "quotas/", body).status == 403
    after = read_all_rows(superuser())
    assert len(after.pop("governance_auditentry")) == len(before.pop("governance_auditentry")) + 1
    assert after == before


def test_everyone_sees_what_limits_them_and_who_governs_sees_all(
    world: World, olivia: Contract, alice: Contract, bob: Contract, ada: Contract
) -> None:
    set_quota(olivia, "member", world.alice.member.id, memories=5)
    for client, sees in ((olivia, True), (ada, True), (alice, True), (bob, False)):
        ids = {row["holder"]["id"] for row in client.get("quotas/").json["results"]}
        assert (str(world.alice.member.id) in ids) is sees


def test_a_quota_names_a_member_of_this_tenant(world: World, olivia: Contract) -> None:
    for holder in (world.charlie.member.id, world.alice.key.id):
        body = {"holder": {"kind": "member", "id": str(holder)}, "limits": {"memories": 1}}
        assert fields_at_fault(olivia.send("PUT", "quotas/", body)) == {"document.holder.id"}


def test_a_change_is_in_the_audit_log_and_has_versions(world: World, olivia: Contract) -> None:
    set_quota(olivia, memories=5)
    set_quota(olivia, memories=6)
    stale = olivia.send("PUT", "quotas/", {"holder": {"kind": "tenant"}, "limits": {"memories": 7}}, if_match='"1"')
    assert stale.status == 412
    policy = olivia.get("policies/?kind=quota").json["results"][0]
    assert (policy["name"], policy["version"], policy["document"]["limits"]["memories"]) == ("quota.tenant", 2, 6)
    with acting(world.olivia.actor):
        rows = list(AuditEntry.objects.filter(verb=Verb.QUOTA_CHANGED).order_by("id"))
    assert [row.version for row in rows] == [1, 2]
    assert bytes(rows[0].after_hash or b"") == bytes(rows[1].before_hash or b"") != b""


def test_put_changes_the_quota_that_a_policy_set(olivia: Contract, alice: Contract) -> None:
    document = {"holder": {"kind": "tenant"}, "limits": {"memories": 1}}
    for name in ("one", "two"):
        assert olivia.post("policies/", {"kind": "quota", "name": name, "document": document}).status == 201
    alice.add("First.")
    reply = olivia.send("PUT", "quotas/", {"holder": {"kind": "tenant"}, "limits": {"memories": 2}})
    assert (reply.status, reply.json["limits"]["memories"]) == (200, 2)
    alice.add("Second.")
    assert is_refused(alice.post("memories/", {"content": "Third."}))
    in_force = olivia.get("policies/?kind=quota").json["results"]
    assert [row["document"]["limits"]["memories"] for row in in_force] == [2]


def test_the_page_shows_what_the_job_counted_for_tenant_and_member(world: World) -> None:
    alice, olivia = contract(world, "alice"), contract(world, "olivia")
    set_quota(olivia, kind="member", holder=world.alice.member.id, memories=10)
    for number in range(3):
        alice.post("memories/", {"content": f"Alice's note {number}.", "namespace": "/team"})
    olivia.post("memories/", {"content": "The owner's note.", "namespace": "/team"})
    counts_ask()
    run_jobs()
    views = {view.holder.id: view for view in quotas_list(actor=world.olivia.actor, is_live=False)}
    live = {view.holder.id: view for view in quotas_list(actor=world.olivia.actor)}
    for member, count in ((world.acme.id, 4), (world.olivia.member.id, 1), (world.alice.member.id, 3)):
        assert views[member].used[Measure.MEMORIES] == count
        assert views[member].used == live[member].used
        assert views[member].counted_at is not None
    alice.post("memories/", {"content": "One more.", "namespace": "/team"})
    page = signed_in(world.olivia).get("/quotas/").content.decode()
    assert "3 of 10" in page
    assert "Counted" in page
    counts_ask()
    run_jobs()
    assert "4 of 10" in signed_in(world.olivia).get("/quotas/").content.decode()


def test_before_the_first_count_the_page_counts_itself(world: World) -> None:
    contract(world, "olivia").post("memories/", {"content": "The owner's note.", "namespace": "/team"})
    (tenant, member) = quotas_list(actor=world.olivia.actor, is_live=False)
    assert (tenant.counted_at, tenant.used[Measure.MEMORIES], member.used[Measure.MEMORIES]) == (None, 1, 1)


def test_counts_of_others_stand_on_nobodys_page(world: World) -> None:
    contract(world, "olivia").post("memories/", {"content": "The owner's note.", "namespace": "/team"})
    counts_ask()
    run_jobs()
    views = {name: quotas_list(actor=world.person(name).actor, is_live=False) for name in ("bob", "charlie")}
    assert {view.holder.id for view in views["bob"]} == {world.acme.id, world.bob.member.id}
    assert {view.holder.id for view in views["charlie"]} == {world.other.id, world.charlie.member.id}
    assert [view.used[Measure.MEMORIES] for view in views["charlie"]] == [0, 0]
