"""Deleting a whole tenant: asked for by its owner, cancelled within the grace period, refused by holds."""

import base64
import json
from collections.abc import Callable
from io import StringIO
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DatabaseError

from governance.database import acting
from governance.keys.services import key_store
from governance.keys.signing_keys import is_signed, signing_key
from governance.keys.tables import ALL_SCOPES
from governance.tenants.selectors import tenants_all
from governance.vocabulary import RoleName
from tests.factories import World, client_for, person_add
from tests.governance.web.visitors import signed_in
from tests.harness.servers import needs_maintain
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from vault.deletion.deletion_job import rows_erase
from vault.deletion.deletion_replay import deletions_apply
from vault.subjects.rules import signed_bytes

Superuser = Callable[[], psycopg.Connection]
ADDRESS = "organisation/deletion/"
PAGE = "/settings/organisation/"
CONFIRMED = {"slug": "acme", "understood": "yes"}
LEFT = {"governance_auditentry", "governance_auditseal", "governance_auditunsealed", "governance_auditcheckpoint"}


def end_grace_period(superuser: Superuser) -> None:
    """Move the times of the deletion that waits back, as if seven days had passed."""
    superuser().execute("UPDATE governance_tenant SET deletion_at = now() WHERE deletion_at IS NOT NULL")
    superuser().execute("UPDATE governance_outboxevent SET available_at = now() WHERE topic = 'tenant.erase'")


def rows_of(superuser: Superuser, tenant_id: object) -> dict[str, int]:
    """The number of rows that a tenant has in each table."""
    connection = superuser()
    tables = connection.execute(
        "SELECT relname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attname = 'tenant_id' "
        "WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    ).fetchall()
    counts = {}
    for (table,) in tables:
        row = connection.execute(f"SELECT count(*) FROM {table} WHERE tenant_id = %s".encode(), [tenant_id]).fetchone()
        if row and row[0]:
            counts[str(table)] = int(row[0])
    return counts


def print_receipt(tenant_id: object) -> object:
    printed = StringIO()
    call_command("tenant_delete", "--receipt", str(tenant_id), "--json", stdout=printed)
    return json.loads(printed.getvalue())


def request_deletion(owner: Contract) -> dict[str, Any]:
    reply = owner.post(ADDRESS, {"slug": "acme"})
    assert reply.status == 202, reply.json
    job: dict[str, Any] = reply.json["job"]
    return job


@needs_maintain
def test_deletion_leaves_the_audit_log_and_a_signed_receipt_and_no_other_tenant_changes(
    world: World, alice: Contract, olivia: Contract, charlie: Contract, superuser: Superuser
) -> None:
    memories = [alice.add(f"Note {number} of the team.", namespace="/team")["id"] for number in range(3)]
    assert alice.patch(f"memories/{memories[0]}/", {"title": "Second"}, if_match='"1"').status == 200
    conversation = alice.post("conversations/", {"title": "Plans"}).json["id"]
    asked = alice.post(f"conversations/{conversation}/turns/", {"content": "Which notes?"})
    assert asked.status == 201, asked.json
    assert olivia.post("subjects/", {"reference": "customer-4711"}).status == 201
    about = alice.add("Somebody likes tea.", namespace="/team", subject="customer-4711")["id"]
    assert olivia.post(f"memories/{about}/freeze/", {"reason": "Case 17"}).status == 200
    assert olivia.post(f"memories/{about}/unfreeze/").status == 200
    foreign = charlie.add("The otter swims.", namespace="/mine")
    assert alice.post(f"memories/{memories[2]}/transition/", {"to": "archived"}).status == 200
    run_jobs()
    theirs = rows_of(superuser, world.other.id)
    preview = olivia.post(f"{ADDRESS}?dry_run=true", {"slug": "acme"}).json
    assert (preview["erased"]["memories"], preview["members"], preview["holds"]) == (6, 4, [])
    job = request_deletion(olivia)["id"]
    run_jobs()
    assert alice.get(f"memories/{memories[0]}/").status == 200, "the grace period has not ended"
    assert olivia.post(ADDRESS, {"slug": "acme"}).status == 409
    end_grace_period(superuser)
    run_jobs()
    faults = "SELECT last_error FROM governance_outboxevent WHERE topic = 'tenant.erase' AND done_at IS NULL"
    assert superuser().execute(faults).fetchall() == []
    assert rows_of(superuser, world.acme.id).keys() - LEFT == {"governance_job", "governance_outboxevent"}
    row = superuser().execute(
        "SELECT slug, name, receipt, erased_at IS NOT NULL FROM governance_tenant WHERE id = %s", [world.acme.id]
    )
    slug, name, receipt, is_erased = row.fetchone() or ("", "", {}, False)
    assert (slug, name, is_erased) == (f"deleted-{world.acme.id.hex}", "", True)
    assert receipt["erased"] == preview["erased"]
    assert (receipt["subject"], receipt["key_destroyed"]) == (None, True)
    assert receipt["asked_by"]["id"] == str(world.olivia.key.id)
    assert all(receipt["clean"][name] for name in ("live_files_by", "wal_by", "backups_by"))
    assert is_signed(signing_key().public_key(), signed_bytes(receipt), base64.b64decode(receipt["signature"]))
    (file,) = (settings.DATA_DIR / "receipts").glob(f"{world.acme.id}-*.json")
    assert json.loads(file.read_text()) == receipt
    assert file.stat().st_mode & 0o777 == 0o600
    assert print_receipt(world.acme.id) == receipt, "every machine has it from the database"
    assert (world.acme.id, ALL_SCOPES) in key_store().destroyed_scopes()
    status = superuser().execute("SELECT status FROM governance_job WHERE id = %s", [job])
    assert status.fetchone() == ("succeeded",)
    for person in (world.olivia, world.alice, world.bob):
        assert client_for(person.key.text).get("me/").status == 401
    emails = superuser().execute("SELECT email FROM governance_user").fetchall()
    assert emails == [("charlie@other.example",)]
    assert dict(tenants_all()) == {"other": world.other.id}
    assert charlie.get(f"memories/{foreign['id']}/").json["content"] == "The otter swims."
    after = rows_of(superuser, world.other.id)
    changing = LEFT | {"vault_cubeuse", "governance_outboxevent", "governance_usage"}
    assert {name: after.get(name) for name in theirs if name not in changing} == {
        name: count for name, count in theirs.items() if name not in changing
    }
    assert key_store().destroyed_scopes() == [(world.acme.id, ALL_SCOPES)]
    key_store().check()


def test_cancelled_deletion_deletes_nothing_and_can_be_asked_for_again(
    world: World, alice: Contract, olivia: Contract, superuser: Superuser
) -> None:
    memory = alice.add("A note.", namespace="/team")["id"]
    job = request_deletion(olivia)["id"]
    assert olivia.post(f"jobs/{job}/cancel/").status == 202
    end_grace_period(superuser)
    run_jobs()
    assert alice.get(f"memories/{memory}/").status == 200
    assert olivia.get(f"jobs/{job}/").json["status"] == "cancelled"
    assert request_deletion(olivia)["id"] != job


def test_job_that_is_run_before_its_time_deletes_nothing(
    world: World, alice: Contract, olivia: Contract, superuser: Superuser
) -> None:
    memory = alice.add("A note.", namespace="/team")["id"]
    job = request_deletion(olivia)["id"]
    superuser().execute("UPDATE governance_outboxevent SET available_at = now() WHERE topic = 'tenant.erase'")
    run_jobs()
    failed = olivia.get(f"jobs/{job}/").json
    assert (failed["status"], failed["error"]["code"]) == ("failed", "conflict")
    assert alice.get(f"memories/{memory}/").status == 200


def test_hold_refuses_the_deletion_and_is_listed(
    world: World, alice: Contract, olivia: Contract, superuser: Superuser
) -> None:
    memory = alice.add("A note.", namespace="/team")["id"]
    hold = olivia.post("holds/", {"reason": "Case 17", "memory_id": memory}).json["id"]
    preview = olivia.post(f"{ADDRESS}?dry_run=true", {"slug": "acme"}).json
    assert [(hold["id"], hold["kind"], hold["memories"]) for hold in preview["holds"]] == [(hold, "memory", 1)]
    refused = olivia.post(ADDRESS, {"slug": "acme"})
    assert (refused.status, refused.code) == (423, "held")
    assert hold in refused.json["errors"][0]["message"]
    assert signed_in(world.olivia).post(PAGE, CONFIRMED).status_code == 422
    with superuser() as connection:
        connection.execute("UPDATE governance_tenant SET erasing_since = now() WHERE slug = 'acme'")
    with acting(world.olivia.actor), pytest.raises(DatabaseError, match="a hold keeps this tenant"):
        rows_erase()


def test_hold_made_within_the_grace_period_refuses_the_job(
    world: World, alice: Contract, olivia: Contract, superuser: Superuser
) -> None:
    memory = alice.add("A note.", namespace="/team")["id"]
    job = request_deletion(olivia)["id"]
    assert olivia.post("holds/", {"reason": "Case 17", "memory_id": memory}).status == 201
    end_grace_period(superuser)
    run_jobs()
    failed = olivia.get(f"jobs/{job}/").json
    assert (failed["status"], failed["error"]["code"]) == ("failed", "held")
    assert alice.get(f"memories/{memory}/").status == 200


def test_rows_of_a_tenant_that_is_not_being_deleted_are_refused(world: World) -> None:
    with acting(world.olivia.actor), pytest.raises(DatabaseError, match="not being deleted"):
        rows_erase()


@pytest.mark.parametrize(("who", "status"), [("alice", 403), ("bob", 403), ("ada", 403), ("adam", 403)])
def test_who_is_no_owner_deletes_nothing(
    world: World, olivia: Contract, superuser: Superuser, who: str, status: int
) -> None:
    person = person_add(world.acme, "adam@acme.example", RoleName.ADMIN) if who == "adam" else world.person(who)
    client, browser = client_for(person.key.text), signed_in(person)
    before = superuser().execute("SELECT count(*) FROM governance_job").fetchone()
    for address in (ADDRESS, f"{ADDRESS}?dry_run=true"):
        assert client.post(address, {"slug": "acme"}).status == status
    assert browser.get(PAGE).status_code == status
    assert browser.post(PAGE, CONFIRMED).status_code == status
    request_deletion(olivia)
    assert browser.post(f"{PAGE}cancel/").status_code == status
    after = superuser().execute("SELECT count(*) FROM governance_job").fetchone()
    assert before is not None
    assert after == (before[0] + 1,)


def test_stranger_deletes_only_their_own_organisation(world: World, charlie: Contract, superuser: Superuser) -> None:
    assert charlie.post(ADDRESS, {"slug": "acme"}).status == 400
    assert charlie.post(ADDRESS, {"slug": "other"}).status == 202
    waiting = superuser().execute("SELECT slug FROM governance_tenant WHERE deletion_at IS NOT NULL").fetchall()
    assert waiting == [("other",)]


def test_same_key_asks_for_one_deletion(olivia: Contract) -> None:
    first = olivia.post(ADDRESS, {"slug": "acme"}, idempotency_key="once")
    again = olivia.post(ADDRESS, {"slug": "acme"}, idempotency_key="once")
    assert (first.status, again.status, first.json) == (202, 202, again.json)


def test_member_of_another_organisation_keeps_their_account(
    world: World, olivia: Contract, superuser: Superuser
) -> None:
    person_add(world.other, "alice@acme.example", RoleName.VIEWER)
    request_deletion(olivia)
    end_grace_period(superuser)
    run_jobs()
    emails = superuser().execute("SELECT email FROM governance_user ORDER BY email").fetchall()
    assert emails == [("alice@acme.example",), ("charlie@other.example",)]


def test_killed_deletion_goes_on_with_its_next_part(
    world: World, alice: Contract, olivia: Contract, superuser: Superuser, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        alice.add(f"Note {number}.", namespace="/team")
    request_deletion(olivia)
    end_grace_period(superuser)
    monkeypatch.setattr("vault.deletion.deletion_job.rows_erase", _raise)
    run_jobs()
    assert "vault_cube" in rows_of(superuser, world.acme.id)
    monkeypatch.undo()
    superuser().execute("UPDATE governance_outboxevent SET available_at = now() WHERE done_at IS NULL")
    run_jobs()
    assert "vault_cube" not in rows_of(superuser, world.acme.id)


def _raise() -> int:
    raise RuntimeError("killed")


def test_deletion_is_done_again_in_a_database_that_was_restored(
    world: World, alice: Contract, charlie: Contract, superuser: Superuser
) -> None:
    alice.add("A note.", namespace="/team")
    foreign = charlie.add("The otter swims.", namespace="/mine")["id"]
    key_store().destroy_tenant(world.acme.id)
    assert deletions_apply() == 1
    assert rows_of(superuser, world.acme.id).keys() <= LEFT
    assert deletions_apply() == 0
    assert charlie.get(f"memories/{foreign}/").status == 200


def test_page_counts_asks_twice_and_cancels(world: World, alice: Contract, olivia: Contract) -> None:
    alice.add("A note.", namespace="/team")
    browser = signed_in(world.olivia)
    page = browser.get(PAGE).content.decode()
    assert "1 memory" in page
    assert "4 members" in page
    assert browser.post(PAGE, {"slug": "acme"}).status_code == 422
    assert browser.post(PAGE, {"slug": "other", "understood": "yes"}).status_code == 422
    assert browser.post(PAGE, CONFIRMED).status_code == 303
    assert "Keep the organisation" in browser.get(PAGE).content.decode()
    assert browser.post(f"{PAGE}cancel/").status_code == 303
    assert "Keep the organisation" not in browser.get(PAGE).content.decode()
    assert browser.post(f"{PAGE}cancel/").status_code == 409


def test_command_counts_asks_and_cancels(world: World, alice: Contract) -> None:
    def command(*words: str) -> dict[str, Any]:
        printed = StringIO()
        call_command("tenant_delete", "--tenant", "acme", "--json", *words, stdout=printed)
        answer: dict[str, Any] = json.loads(printed.getvalue())
        return answer

    assert command()["members"] == 4
    with pytest.raises(CommandError, match="type the short name"):
        command("--confirm", "other")
    assert command("--confirm", "acme")["delete_at"]
    assert command("--cancel")["job"]
    with pytest.raises(CommandError, match="No deletion"):
        command("--cancel")
