"""Data subjects: named, assigned, exported and erased, over REST and on their pages."""

import base64
import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import psycopg
import pytest

from governance.errors import KeyUnavailable
from governance.keys.services import key_store, subject_scope
from governance.keys.signing_keys import is_signed, signing_key
from governance.vocabulary import Topic
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.harness.servers import needs_maintain
from tests.vault.api.contract import MISSING, Contract
from tests.vault.outbox import run_jobs
from vault.content.drafts import CubeDraft, SourceRef
from vault.cubes.services import cubes_add
from vault.jobs.memory_additions import drafts_screen, memories_add_later
from vault.subjects.rules import signed_bytes
from vault.vocabulary import SourceKind

Superuser = Callable[[], psycopg.Connection]
REFERENCE = "customer-4711"
CANARY = "vermilion"


def subject_of(owner: Contract, reference: str = REFERENCE) -> str:
    made = owner.post("subjects/", {"reference": reference})
    assert made.status == 201
    return str(made.json["id"])


def about(alice: Contract, number: int = 0, **more: Any) -> dict[str, Any]:
    content = f"The customer has {number} canaries, all {CANARY}."
    return alice.add(content, namespace="/team", subject=REFERENCE, **more)


def erase(owner: Contract, subject: str) -> dict[str, Any]:
    asked = owner.post(f"subjects/{subject}/erase/")
    assert asked.status == 202, asked.json
    run_jobs()
    job: dict[str, Any] = owner.get(f"jobs/{asked.json['job']['id']}/").json
    return job


def test_a_subject_is_named_once_and_listed_by_its_reference(olivia: Contract) -> None:
    made = subject_of(olivia)
    assert subject_of(olivia) == made
    subject_of(olivia, "customer-4712")
    found = olivia.get(f"subjects/?reference={REFERENCE}").json
    assert [(row["id"], row["reference"], row["status"]) for row in found["results"]] == [(made, REFERENCE, "active")]
    assert olivia.get("subjects/").json["count"] == 2
    assert olivia.get("subjects/?reference=nobody").json["results"] == []


def test_assigned_memories_are_sealed_under_the_key_of_the_subject(
    alice: Contract, olivia: Contract, superuser: Superuser
) -> None:
    ids = [alice.add(f"Note {number}.", namespace="/team")["id"] for number in range(2)]
    subject = subject_of(olivia)
    reply = olivia.post(f"subjects/{subject}/assign/", {"ids": ids})
    assert (reply.status, sorted(reply.json["ids"])) == (200, sorted(ids))
    assert olivia.post(f"subjects/{subject}/assign/", {"ids": ids}).json["ids"] == []
    shown = alice.get(f"memories/{ids[0]}/").json
    assert (shown["subject"], shown["version"]) == ({"id": subject, "reference": REFERENCE}, 2)
    row = superuser().execute(
        "SELECT tenant_id, sealed FROM vault_cubeversion WHERE cube_id = %s AND number = 2", [ids[0]]
    )
    tenant, sealed = row.fetchone() or (None, b"")
    key = key_store().key_for(tenant, subject_scope(UUID(subject)))
    assert bytes(sealed)[1:17] == key.id.bytes


def test_an_export_has_every_version_with_its_lineage_in_both_forms(
    alice: Contract, olivia: Contract, world: World
) -> None:
    memory = about(alice, title="Pets", metadata={"room": "<b>attic</b>"})
    assert alice.patch(f"memories/{memory['id']}/", {"content": f"Second, {CANARY}."}, if_match='"1"').status == 200
    derived = CubeDraft("A summary.", namespace="/team", sources=(SourceRef(UUID(memory["id"]), 2, SourceKind.TEXT),))
    made = str(cubes_add(actor=world.alice.actor, drafts=[derived])[0].cube.id)
    gone = about(alice, 1)
    assert alice.delete(f"memories/{gone['id']}/").status == 204
    subject = subject_of(olivia)
    asked = olivia.post(f"subjects/{subject}/export/")
    assert asked.status == 202
    job = asked.json["job"]["id"]
    assert olivia.get(f"subjects/{subject}/exports/{job}/json/").status == 409
    run_jobs()
    document = json.loads(olivia.get(f"subjects/{subject}/exports/{job}/json/").body)
    assert document["subject"] == {"id": subject, "reference": REFERENCE}
    assert [memory["id"] for memory in document["memories"]] == [memory["id"], gone["id"]]
    first = document["memories"][0]
    assert [version["version"] for version in first["versions"]] == [1, 2]
    assert all(CANARY in version["content"] for version in first["versions"])
    assert first["versions"][0]["metadata"] == {"room": "<b>attic</b>"}
    assert {"direction": "used_in", "memory_id": made, "kind": "text"} in first["lineage"]
    assert document["memories"][1]["deleted_at"]
    assert document["withheld"] == 0
    page = olivia.get(f"subjects/{subject}/exports/{job}/html/").body.decode()
    assert page.count(CANARY) == 3
    assert "&lt;b&gt;attic&lt;/b&gt;" in page
    assert page.rstrip().endswith("</html>")
    assert olivia.get(f"subjects/{MISSING}/exports/{job}/json/").status == 404
    assert olivia.get(f"subjects/{subject_of(olivia, 'another')}/exports/{job}/json/").status == 404


def test_an_export_withholds_what_was_made_from_redacted_words(world: World, alice: Contract, olivia: Contract) -> None:
    """The summary waits for a review, and shows nowhere until then."""
    source = about(alice, 2)["id"]
    subject = subject_of(olivia)
    ref = SourceRef(UUID(source), 1, SourceKind.TEXT)
    summary = CubeDraft(f"In short: {CANARY}.", namespace="/team", subject=REFERENCE, sources=(ref,))
    cubes_add(actor=world.alice.actor, drafts=[summary])
    assert alice.post(f"memories/{source}/redact/", {"version": 1}).status == 200
    job = olivia.post(f"subjects/{subject}/export/").json["job"]["id"]
    run_jobs()
    for form in ("json", "html"):
        assert CANARY not in olivia.get(f"subjects/{subject}/exports/{job}/{form}/").body.decode()


@needs_maintain
def test_an_erasure_leaves_nothing_and_signs_its_receipt(
    world: World, alice: Contract, olivia: Contract, superuser: Superuser
) -> None:
    memories = [about(alice, number) for number in range(3)]
    other = alice.add("Somebody else likes tea.", namespace="/team")
    assert alice.patch(f"memories/{memories[0]['id']}/", {"title": "Second"}, if_match='"1"').status == 200
    source = SourceRef(UUID(memories[0]["id"]), 2, SourceKind.TEXT)
    summary = CubeDraft(f"In short: {CANARY}.", namespace="/team", sources=(source,))
    derived = str(cubes_add(actor=world.alice.actor, drafts=[summary])[0].cube.id)
    run_jobs()
    subject = subject_of(olivia)
    waiting = [CubeDraft(f"Later {CANARY}.", namespace="/team", subject=REFERENCE)]
    later = memories_add_later(actor=world.alice.actor, screened=drafts_screen(actor=world.alice.actor, drafts=waiting))
    preview = olivia.post(f"subjects/{subject}/erase/?dry_run=true").json
    assert (preview["erased"]["memories"], preview["erased"]["derived"], preview["kept_by_holds"]) == (3, 1, [])
    asked = olivia.post(f"subjects/{subject}/erase/")
    assert olivia.post(f"subjects/{subject}/erase/").status == 409
    superuser().execute(
        "UPDATE governance_outboxevent SET available_at = now() + '1 hour' WHERE topic = %s", [Topic.MEMORIES_ADD]
    )
    run_jobs()
    superuser().execute("UPDATE governance_outboxevent SET available_at = now() WHERE topic = %s", [Topic.MEMORIES_ADD])
    run_jobs()
    job = olivia.get(f"jobs/{asked.json['job']['id']}/").json
    assert job["status"] == "succeeded", job
    line = olivia.get(f"subjects/{subject}/").json
    (receipt,) = line["receipts"]
    assert (line["status"], line["reference"], receipt) == ("erased", "", job["result"]["receipt"])
    assert receipt["erased"] == preview["erased"] | {"requests": 1}
    assert receipt["erased"]["versions"] == 4
    assert receipt["key_destroyed"]
    assert receipt["clean"]["live_files_by"] > receipt["at"]
    assert all(receipt["clean"][name] for name in ("wal_by", "backups_by"))
    signature = base64.b64decode(receipt["signature"])
    assert is_signed(signing_key().public_key(), signed_bytes(receipt), signature)
    assert not is_signed(signing_key().public_key(), signed_bytes(receipt | {"key_destroyed": False}), signature)
    assert [alice.get(f"memories/{memory['id']}/").status for memory in memories] == [404] * 3
    assert CANARY not in alice.post("memories/search/", {"query": CANARY, "include_archived": True}).body.decode()
    assert CANARY not in alice.get("memories/?page_size=200").body.decode()
    failed = alice.get(f"jobs/{later.id}/").json
    assert (failed["status"], failed["error"]["code"]) == ("failed", "conflict")
    assert alice.get(f"memories/{other['id']}/").status == 200
    root = superuser()
    blank = root.execute("SELECT sealed FROM vault_cubeversion WHERE cube_id = %s", [derived]).fetchall()
    assert [bytes(item) for (item,) in blank] == [b""]
    named = "SELECT count(*) FROM {} WHERE {} = ANY(%s)"
    ids = [memory["id"] for memory in memories]
    for table, column in (
        ("vault_cubeversion", "cube_id"),
        ("vault_embedding", "cube_id"),
        ("vault_posting", "cube_id"),
    ):
        assert root.execute(named.format(table, column), [ids]).fetchone() == (0,), table
    assert (world.acme.id, subject_scope(UUID(subject))) in key_store().destroyed_scopes()
    with pytest.raises(KeyUnavailable):
        key_store().key_for(world.acme.id, subject_scope(UUID(subject)))
    assert olivia.post(f"subjects/{subject}/erase/").status == 409
    assert olivia.post(f"subjects/{subject}/export/").status == 409


def test_who_is_written_about_again_is_another_subject(alice: Contract, olivia: Contract) -> None:
    about(alice)
    subject = subject_of(olivia)
    assert erase(olivia, subject)["status"] == "succeeded"
    again = about(alice, 7)
    assert again["subject"]["reference"] == REFERENCE
    assert again["subject"]["id"] != subject
    assert alice.get(f"memories/{again['id']}/").json["content"] == again["content"]


def test_what_a_hold_keeps_is_listed_and_goes_with_the_next_erasure(alice: Contract, olivia: Contract) -> None:
    kept, gone = about(alice, 0), about(alice, 1)
    assert olivia.post(f"memories/{kept['id']}/freeze/", {"reason": "Case 17"}).status == 200
    subject = subject_of(olivia)
    preview = olivia.post(f"subjects/{subject}/erase/?dry_run=true").json
    assert preview["kept_by_holds"] == [{"id": kept["id"], "reasons": ["Case 17"]}]
    receipt = erase(olivia, subject)["result"]["receipt"]
    assert receipt["kept_by_holds"] == {"count": 1, "memories": [kept["id"]]}
    assert not receipt["key_destroyed"]
    assert olivia.get(f"subjects/{subject}/").json["status"] == "kept"
    assert alice.get(f"memories/{kept['id']}/").json["content"] == kept["content"]
    assert alice.get(f"memories/{gone['id']}/").status == 404
    assert olivia.post(f"memories/{kept['id']}/unfreeze/").status == 200
    assert erase(olivia, subject)["result"]["receipt"]["key_destroyed"]
    line = olivia.get(f"subjects/{subject}/").json
    assert (line["status"], len(line["receipts"])) == ("erased", 2)
    assert alice.get(f"memories/{kept['id']}/").status == 404


def test_a_hold_over_the_subject_refuses_the_erasure(alice: Contract, olivia: Contract) -> None:
    memory = about(alice)
    subject = subject_of(olivia)
    assert olivia.post("holds/", {"reason": "Case 17", "subject": REFERENCE}).status == 201
    assert olivia.post(f"subjects/{subject}/erase/?dry_run=true").json["held"]
    refused = olivia.post(f"subjects/{subject}/erase/")
    assert (refused.status, refused.code) == (423, "held")
    assert alice.get(f"memories/{memory['id']}/").status == 200


def test_versions_about_the_subject_lose_their_words_in_a_memory_about_somebody_else(
    alice: Contract, olivia: Contract
) -> None:
    memory = about(alice)
    changed = {"subject": None, "content": "Nobody in particular."}
    assert alice.patch(f"memories/{memory['id']}/", changed, if_match='"1"').status == 200
    receipt = erase(olivia, subject_of(olivia))["result"]["receipt"]
    assert receipt["key_destroyed"]
    versions = alice.get(f"memories/{memory['id']}/versions/").json["results"]
    assert {version["version"]: version["content"] for version in versions} == {1: "", 2: "Nobody in particular."}


@pytest.mark.parametrize(("who", "status"), [("alice", 403), ("bob", 403), ("ada", 403), ("charlie", 404)])
def test_who_may_not_manage_subjects_is_refused_and_changes_nothing(
    world: World, alice: Contract, olivia: Contract, who: str, status: int, superuser: Superuser
) -> None:
    memory, subject = about(alice), subject_of(olivia)
    asked = olivia.post(f"subjects/{subject}/export/").json["job"]["id"]
    run_jobs()
    person = world.client(who)
    before = superuser().execute("SELECT count(*) FROM governance_job").fetchone()
    for address, body in (("assign/", {"ids": [memory["id"]]}), ("export/", None), ("erase/", None)):
        assert person.post(f"subjects/{subject}/{address}", body).status == status, address
    for address in ("", f"exports/{asked}/json/", f"exports/{asked}/html/"):
        assert person.get(f"subjects/{subject}/{address}").status == status, address
    browser = signed_in(world.person(who))
    for address in ("assign/", "export/", "erase/"):
        assert browser.post(f"/subjects/{subject}/{address}", {"confirmation": REFERENCE}).status_code == status
    assert browser.get(f"/subjects/{subject}/").status_code == status
    if who != "charlie":
        assert (person.get("subjects/").status, person.post("subjects/", {"reference": "x"}).status) == (403, 403)
        assert browser.get("/subjects/").status_code == 403
    assert superuser().execute("SELECT count(*) FROM governance_job").fetchone() == before
    assert alice.get(f"memories/{memory['id']}/").status == 200


def test_the_pages_name_assign_export_and_erase(world: World, alice: Contract, olivia: Contract) -> None:
    note = alice.add(f"A {CANARY} note.", namespace="/team")
    browser = signed_in(world.olivia)
    assert browser.post("/subjects/", {"reference": " "}).status_code == 422
    made = browser.post("/subjects/", {"reference": REFERENCE})
    assert made.status_code == 303
    address = made["Location"]
    assert REFERENCE in browser.get("/subjects/").content.decode()
    assert note["id"] in browser.get(f"{address}?q={CANARY}").content.decode()
    assert browser.post(f"{address}assign/", {}).status_code == 422
    assert browser.post(f"{address}assign/", {"ids": [note["id"]]}).status_code == 303
    assert browser.post(f"{address}export/").status_code == 303
    run_jobs()
    page = browser.get(address).content.decode()
    assert "1 memory is erased for good" in page
    assert all(f"/{form}/" in page for form in ("html", "json"))
    assert browser.post(f"{address}erase/", {"confirmation": "yes"}).status_code == 422
    assert browser.post(f"{address}erase/", {"confirmation": REFERENCE}).status_code == 303
    run_jobs()
    page = browser.get(address).content.decode()
    assert "Receipt of the erasure" in page
    assert REFERENCE not in page
    receipt = olivia.get(f"subjects/{address.split('/')[-2]}/").json["receipts"][0]
    download = browser.get(f"{address}receipts/{receipt['id']}/")
    assert json.loads(download.content) == receipt
    assert alice.get(f"memories/{note['id']}/").status == 404
