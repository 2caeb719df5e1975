"""audit/ as its callers see it: filters, pages, exports for their requester alone, and nobody without the right."""

import csv
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from governance.audit.checkpoints import checkpoints_outside, public_key
from governance.audit.reading.exports import export_create, exports_tidy
from governance.audit.reading.files import export_path
from governance.audit.reading.queries import AuditQuery
from governance.audit.verifier import checkpoint_read, export_verify, public_key_read
from governance.database import acting
from governance.models import Job
from governance.vocabulary import ExportFormat, RoleName, Scope
from tests.factories import World, person_add
from tests.governance.audit.logs import log_make, seal_all
from tests.governance.filled_tenants import drain
from tests.vault.api.contract import MISSING, Contract, contract, fields_at_fault, without_id

Superuser = Callable[[], psycopg.Connection]


def of(world: World, name: str) -> Contract:
    return contract(world, name)


def test_the_audit_log_is_listed_newest_first_in_pages(world: World) -> None:
    log_make(world.alice.actor, 30)
    seen: list[str] = []
    address: str | None = "audit/?page_size=7&verb=memory.updated"
    while address:
        page = of(world, "ada").get(address.partition("/api/v1/")[2] or address).json
        seen += [row["id"] for row in page["results"]]
        address = page["next"]
    assert seen == sorted(seen, reverse=True)
    assert len(seen) == len(set(seen)) == page["count"]


def test_filters_hold_each_and_together(world: World) -> None:
    ada, alice = of(world, "ada"), of(world, "alice")
    memory = alice.post("memories/", {"content": "one"}, x_request_id="the-request-of-one").json["results"][0]["id"]
    alice.get(f"memories/{memory}/")
    of(world, "bob").post("memories/", {"content": "no"})

    def verbs(asked: str) -> list[str]:
        reply = ada.get(f"audit/?{asked}")
        assert reply.status == 200
        return [row["verb"] for row in reply.json["results"]]

    assert set(verbs("outcome=denied")) == {"access.denied"}
    assert verbs(f"object={memory}") == ["memory.read", "memory.created"]
    assert verbs(f"object={memory}&verb=memory.read") == ["memory.read"]
    assert verbs(f"principal={world.bob.member.id}") == ["access.denied"], "a member behind a key"
    assert verbs(f"principal={world.bob.key.id}") == ["access.denied"]
    assert "memory.created" in verbs("request_id=the-request-of-one")
    assert verbs("from=2999-01-01") == verbs("to=2001-01-01") == []
    assert "memory.created" in verbs("from=2001-01-01T00:00:00Z&to=2999-01-01T00:00:00%2B02:00")


def test_invalid_query_is_reported_by_field(world: World) -> None:
    ada = of(world, "ada")
    for asked, field in (
        ("verb=memory.eaten", "verb"),
        ("outcome=perhaps", "outcome"),
        ("principal=me", "principal"),
        ("object=x", "object"),
        ("from=yesterday", "from"),
        ("to=2027-13-01", "to"),
        ("who=ada", "who"),
        ("cursor=x", "cursor"),
        (f"request_id={'x' * 65}", "request_id"),
        ("request_id=%00", "request_id"),
    ):
        assert fields_at_fault(ada.get(f"audit/?{asked}")) == {field}
    for body, field in (
        ({"format": "xml"}, "format"),
        ({"verb": "x"}, "verb"),
        ({"from": "x"}, "from"),
        ({"a": 1}, "a"),
    ):
        assert fields_at_fault(ada.post("audit/export/", body)) == {field}
    assert fields_at_fault(ada.get("audit/verify/?after=-1")) == {"after"}
    assert fields_at_fault(ada.get("audit/verify/?after=99999")) == {"after"}
    assert fields_at_fault(ada.get("audit/permission-changes/?verb=memory.read")) == {"verb"}


def test_what_a_job_did_names_the_request_that_asked_for_it(world: World) -> None:
    of(world, "alice").post("memories/", {"content": "one"}, x_request_id="the-request-of-one")
    drain()
    rows = of(world, "ada").get("audit/?request_id=the-request-of-one").json["results"]
    indexed = next(row for row in rows if row["verb"] == "memory.indexed")
    assert indexed["context"]["causes"] == ["the-request-of-one"]
    assert indexed["request_id"].startswith("job-")


def test_a_row_carries_purpose_session_task_channel_and_address(world: World) -> None:
    of(world, "alice").post(
        "memories/",
        {"content": "one"},
        x_memory_purpose="treatment",
        x_memory_session="s-1",
        x_memory_task="t-1",
    )
    row = of(world, "ada").get("audit/?verb=memory.created").json["results"][0]
    assert row["context"] == {
        "channel": "api",
        "purpose": "treatment",
        "session": "s-1",
        "task": "t-1",
        "address": "127.0.0.1",
    }


def test_an_entry_is_shown_with_its_seal(world: World) -> None:
    seal_all(world.acme.id)
    ada = of(world, "ada")
    sealed = ada.get("audit/?page_size=1&verb=tenant.created").json["results"][0]["id"]
    view = ada.get(f"audit/{sealed}/").json
    assert view["seal"]["seq"] == 1
    assert view["seal"]["previous_hash"] == "0" * 64
    fresh = ada.get("audit/?page_size=1").json["results"][0]["id"]
    assert ada.get(f"audit/{fresh}/").json["seal"] is None


def test_reading_the_audit_log_is_in_the_audit_log(world: World) -> None:
    ada = of(world, "ada")
    ada.get("audit/?verb=memory.read")
    ada.get("audit/verify/")
    rows = ada.get(f"audit/?principal={world.ada.member.id}").json["results"]
    assert [row["verb"] for row in rows] == ["audit.verified", "audit.listed"]
    assert rows[1]["detail"] == {"rows": 0, "filters": "verb"}


def test_the_audit_log_verifies_in_one_call_and_names_the_first_bad_row(world: World, superuser: Superuser) -> None:
    log_make(world.alice.actor, 30)
    ada = of(world, "ada")
    assert ada.get("audit/verify/").json == {
        "intact": True,
        "seals": 30,
        "upto": 30,
        "complete": True,
        "checkpoint": 30,
        "first_bad": None,
    }
    bent = superuser()
    bent.execute("SET session_replication_role = replica")
    changed = bent.execute(
        "UPDATE governance_auditentry SET verb = 'memory.read' WHERE id = "
        "(SELECT entry_id FROM governance_auditseal WHERE tenant_id = %s AND seq = 20) RETURNING id",
        [world.acme.id],
    ).fetchone()
    assert changed is not None
    found = ada.get("audit/verify/").json
    assert (found["intact"], found["first_bad"]["seq"]) == (False, 20)
    assert found["first_bad"]["entry_id"] == str(changed[0])
    assert ada.get("audit/verify/?after=20").json["intact"] is True, "the rows behind it are what was sealed"


def test_checkpoints_and_the_key_can_be_taken_away(world: World) -> None:
    seal_all(world.acme.id)
    ada = of(world, "ada")
    (listed,) = ada.get("audit/checkpoints/").json["results"]
    reply = ada.get(f"audit/checkpoints/{listed['id']}/")
    assert checkpoint_read(json.dumps(reply.json)) == checkpoints_outside(world.acme.id)[0]
    assert public_key_read(json.dumps(ada.get("audit/public-key/").json)) == public_key(world.acme.id)


@pytest.mark.parametrize("form", list(ExportFormat))
def test_an_export_is_written_by_a_job_and_verifies(world: World, tmp_path: Path, form: ExportFormat) -> None:
    log_make(world.alice.actor, 30)
    ada = of(world, "ada")
    made = ada.post("audit/export/", {"format": form, "verb": "memory.updated"}).json
    assert (made["status"], made["filters"]) == ("pending", {"verb": "memory.updated"})
    assert ada.get(f"audit/export/{made['id']}/file/").status == 409
    drain()
    export = ada.get(f"audit/export/{made['id']}/").json
    assert (export["status"], export["progress"]) == ("succeeded", 1.0)
    assert ada.get("audit/export/").json["results"] == [export]
    reply = ada.get(f"audit/export/{made['id']}/file/")
    assert (reply.status, len(reply.body)) == (200, export["size"])
    packed = tmp_path / "taken-away.zip"
    packed.write_bytes(reply.body)
    report = export_verify(packed, public_key(world.acme.id), checkpoints_outside(world.acme.id))
    assert (report.intact, report.entries) == (True, export["rows"])
    assert export_path(world.acme.id, UUID(made["id"])).stat().st_mode & 0o777 == 0o600
    verbs = [row["verb"] for row in ada.get(f"audit/?object={made['id']}").json["results"]]
    assert [verb for verb in verbs if verb.startswith("audit.")] == [
        "audit.export_read",
        "audit.export_finished",
        "audit.export_created",
    ]
    assert {"job.created", "job.finished"} <= {*verbs}


def test_an_export_is_for_its_requester_only(world: World) -> None:
    ada = of(world, "ada")
    made = ada.post("audit/export/", {}).json["id"]
    drain()
    another = person_add(world.acme, "otto@acme.example", RoleName.AUDITOR)
    for other in (of(world, "olivia"), Contract(key=another.key.text), of(world, "bob")):
        for address in (f"audit/export/{made}/", f"audit/export/{made}/file/"):
            assert other.get(address).status == 403
        if other.key != world.bob.key.text:
            assert other.get("audit/export/").json["count"] == 0
    assert ada.get(f"audit/export/{made}/file/").status == 200


def test_who_lost_the_right_gets_no_file_any_more(world: World, superuser: Superuser) -> None:
    """The job asks again, as the one who wanted it."""
    made = of(world, "ada").post("audit/export/", {}).json["id"]
    superuser().execute("UPDATE governance_member SET removed_at = now() WHERE id = %s", [world.ada.member.id])
    drain()
    with acting(world.olivia.actor):
        export = Job.objects.get(id=made)
    assert (export.status, export.sealed_result) == ("failed", None)
    assert not export_path(world.acme.id, export.id).exists()


def test_an_export_is_promised_once_for_one_key(world: World) -> None:
    ada = of(world, "ada")
    first = ada.post("audit/export/", {"format": "csv"}, idempotency_key="k")
    again = ada.post("audit/export/", {"format": "csv"}, idempotency_key="k")
    assert (first.status, first.json) == (again.status, again.json)
    assert ada.get("audit/export/").json["count"] == 1


def test_files_of_exports_go_when_their_time_is_over(world: World) -> None:
    view = export_create(actor=world.ada.actor, query=AuditQuery(), form=ExportFormat.JSONL)
    drain()
    path = export_path(world.acme.id, view.id)
    assert exports_tidy() == 0
    week_ago = path.stat().st_mtime - 8 * 24 * 3600
    os.utime(path, (week_ago, week_ago))
    assert exports_tidy() == 1
    assert of(world, "ada").get(f"audit/export/{view.id}/file/").status == 404


def test_permission_changes_are_reported_whole(world: World) -> None:
    ada = of(world, "ada")
    of(world, "alice").post("memories/", {"content": "no change of permissions"})
    person_add(world.acme, "new@acme.example", RoleName.VIEWER)
    report = ada.get("audit/permission-changes/?page_size=200").json
    verbs = [row["verb"] for row in report["results"]]
    assert set(verbs) == {"tenant.created", "member.added", "apikey.created"}
    assert report["results"][1]["detail"] == {"role": "viewer"}
    assert ada.get("audit/permission-changes/?to=2001-01-01").json["count"] == 0
    reply = ada.get("audit/permission-changes/csv/?from=2001-01-01", accept="text/csv")
    rows = list(csv.DictReader(io.StringIO(reply.body.decode())))
    assert [row["verb"] for row in rows] == verbs[::-1]
    assert reply.headers["Content-Disposition"] == 'attachment; filename="permission-changes.csv"'


def test_the_other_tenant_finds_nothing_of_it(world: World) -> None:
    seal_all(world.acme.id)
    ada, charlie = of(world, "ada"), of(world, "charlie")
    entry = ada.get("audit/?page_size=1").json["results"][0]["id"]
    checkpoint = ada.get("audit/checkpoints/").json["results"][0]["id"]
    export = ada.post("audit/export/", {}).json["id"]
    sink = (
        of(world, "olivia")
        .post("audit/sinks/", {"name": "s", "kind": "syslog", "address": "syslog+tcp://log.example"})
        .json["id"]
    )
    for address in (
        "audit/{}/",
        "audit/checkpoints/{}/",
        "audit/export/{}/",
        "audit/export/{}/file/",
        "audit/sinks/{}/",
    ):
        for theirs in (entry, checkpoint, export, sink):
            foreign, missing = charlie.get(address.format(theirs)), charlie.get(address.format(MISSING))
            assert foreign.status == 404
            assert without_id(foreign) == without_id(missing)
    for method in ("DELETE", "POST"):
        address = f"audit/sinks/{sink}/" + ("retry/" if method == "POST" else "")
        assert charlie.send(method, address, None).status == 404
    assert charlie.get(f"audit/?object={entry}").json["count"] == 0
    assert charlie.get(f"audit/?principal={world.ada.member.id}").json["count"] == 0


def test_an_auditor_reads_the_audit_log_and_no_content_and_an_editor_the_reverse(world: World) -> None:
    memory = of(world, "alice").post("memories/", {"content": "secret"}).json["results"][0]["id"]
    assert of(world, "ada").get("audit/").status == 200
    assert of(world, "ada").get(f"memories/{memory}/").status == 404
    assert of(world, "alice").get(f"memories/{memory}/").status == 200
    assert of(world, "alice").get("audit/").status == 403


def test_a_key_needs_the_scope(world: World) -> None:
    reader = contract(world, "olivia", Scope.MEMORIES_READ)
    assert reader.get("audit/").status == 403
    assert contract(world, "olivia", Scope.ADMIN).get("audit/").status == 200
