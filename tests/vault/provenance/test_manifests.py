"""Tests of manifests: an answer with `provenance=true` has a signed manifest, verifiable with the public key."""

import copy
import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from governance.database import acting
from governance.keys.services import key_store
from governance.keys.signing_keys import is_signed, signing_key
from governance.models import AuditEntry
from governance.vocabulary import Verb
from tests.factories import World
from tests.harness.servers import ROOT
from tests.vault.api.contract import MISSING, Contract, contract, fields_at_fault
from tests.vault.outbox import run_jobs
from vault.models import CubeVersion
from vault.provenance.rules import read_signature, signed_bytes

Superuser = Callable[[], psycopg.Connection]
PROVEN = "provenance=true"
Check = Callable[[Any], tuple[int, list[str]]]


@pytest.fixture
def verifier(tmp_path: Path, alice: Contract) -> Check:
    """The stand-alone verifier, with the key that the API gives out: exit code, and what it finds."""
    (tmp_path / "key.pem").write_text(alice.get("provenance/key/").json["public_key"], encoding="utf-8")

    def check(answer: Any) -> tuple[int, list[str]]:
        (tmp_path / "answer.json").write_text(json.dumps(answer), encoding="utf-8")
        script = str(ROOT / "scripts" / "manifest_verifier.py")
        files = [str(tmp_path / "answer.json"), str(tmp_path / "key.pem")]
        # -S -E -P: nothing of this repository is in reach.
        done = subprocess.run(
            [sys.executable, "-E", "-P", script, *files], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        return done.returncode, json.loads(done.stdout)["faults"]

    return check


def test_one_memory_names_its_version_writer_and_recipient(world: World, alice: Contract, bob: Contract) -> None:
    memory_id = alice.add("The pump leaks.", namespace="/team")["id"]
    alice.patch(f"memories/{memory_id}/", {"content": "The pump stopped."}, if_match='"1"')
    answer = bob.get(f"memories/{memory_id}/?{PROVEN}").json
    manifest = answer["manifest"]
    assert manifest["tenant"] == str(world.acme.id)
    assert manifest["recipient"] == {"kind": "api_key", "id": str(world.bob.key.id)}
    with acting(world.alice.actor):
        version = CubeVersion.objects.get(cube_id=memory_id, number=2)
    assert manifest["items"] == [
        {
            "memory_id": memory_id,
            "version": 2,
            "version_hash": bytes(version.hash).hex(),
            "content_sha256": hashlib.sha256(b"The pump stopped.").hexdigest(),
            "writer": {"kind": "api_key", "id": str(world.alice.key.id)},
        }
    ]
    assert "manifest" not in bob.get(f"memories/{memory_id}/").json


def test_every_kind_of_answer_has_one_that_holds(alice: Contract, bob: Contract, verifier: Check) -> None:
    ids = {alice.add(text, namespace="/team")["id"] for text in ("The pump leaks.", "水泵坏了。")}
    run_jobs()
    answers = [
        bob.get(f"memories/{min(ids)}/?{PROVEN}").json,
        bob.get(f"memories/?{PROVEN}").json,
        bob.post(f"memories/search/?{PROVEN}", {"query": "pump"}).json,
        bob.post("memories/search/", {"query": "pump", "provenance": True}).json,
    ]
    for answer in answers:
        assert verifier(answer) == (0, [])
        assert verifier(answer["manifest"]) == (0, [])
        assert {item["memory_id"] for item in answer["manifest"]["items"]} <= ids
        assert bob.post("provenance/verify/", {"manifest": answer["manifest"]}).json["valid"] is True
    assert [len(answer["manifest"]["items"]) for answer in answers] == [1, 2, 2, 2]


def test_manifest_of_a_turn_names_its_memories_and_citations(alice: Contract, verifier: Check) -> None:
    cited = alice.add("The pump leaks at noon.")["id"]
    run_jobs()
    conversation = alice.post("conversations/", {}).json["id"]
    address = f"conversations/{conversation}/turns/"
    asked = {"content": "When does the pump leak?"}
    first = alice.post(address, {**asked, "provenance": True}).json
    again = alice.post(f"{address}?{PROVEN}", asked, idempotency_key="once").json
    assert again == alice.post(f"{address}?{PROVEN}", asked, idempotency_key="once").json
    streamed = alice.stream(f"{address}?{PROVEN}", asked)[-1].data
    listed = alice.get(f"{address}?{PROVEN}").json
    said = hashlib.sha256(first["content"].encode()).hexdigest()
    for answer in (first, again, streamed, listed):
        items = {item["memory_id"]: item["content_sha256"] for item in answer["manifest"]["items"]}
        assert items[cited] is None  # named, but its content is not in the answer
        assert said in items.values()
        assert verifier(answer) == (0, [])
    assert len(listed["manifest"]["items"]) == 7
    assert "manifest" not in alice.post(address, asked).json


FORGERIES: list[tuple[str, Callable[[Any], object]]] = [
    ("recipient", lambda manifest_body: manifest_body["manifest"]["recipient"].update(id=str(MISSING))),
    ("writer", lambda manifest_body: manifest_body["manifest"]["items"][0]["writer"].update(id=str(MISSING))),
    ("version hash", lambda manifest_body: manifest_body["manifest"]["items"][0].update(version_hash="00" * 32)),
    ("an item less", lambda manifest_body: manifest_body["manifest"]["items"].clear()),
    ("time", lambda manifest_body: manifest_body["manifest"].update(at="2020-01-01T00:00:00Z")),
    ("an extra name", lambda manifest_body: manifest_body["manifest"].update(note="x")),
    ("signature", lambda manifest_body: manifest_body["manifest"].update(signature="A" * 86 + "==")),
    ("no signature", lambda manifest_body: manifest_body["manifest"].update(signature="?")),
    ("another key", lambda manifest_body: manifest_body["manifest"].update(key_id="0" * 16)),
]


@pytest.mark.parametrize("forge", [forge for _, forge in FORGERIES], ids=[name for name, _ in FORGERIES])
def test_a_manifest_that_was_changed_shows(alice: Contract, verifier: Check, forge: Callable[[Any], object]) -> None:
    memory_id = alice.add("The pump leaks.")["id"]
    answer = alice.get(f"memories/{memory_id}/?{PROVEN}").json
    forged = copy.deepcopy(answer)
    forge(forged)
    assert verifier(forged)[0] == 1
    reply = alice.post("provenance/verify/", {"manifest": forged["manifest"]})
    assert (reply.status, reply.json["valid"]) == (200, False)


def test_content_that_was_changed_on_its_way_shows(alice: Contract, verifier: Check) -> None:
    alice.add("The pump leaks.")
    answer = alice.get(f"memories/?{PROVEN}").json
    for name, value in (("content", "The pump is fine."), ("version", 2), ("id", str(MISSING))):
        forged = copy.deepcopy(answer)
        forged["results"][0][name] = value
        code, found = verifier(forged)
        assert code == 1
        assert len(found) == 1


def test_the_signature_covers_every_byte_of_what_is_signed(alice: Contract) -> None:
    """The mutant of the promise: any one byte else, and it no longer holds."""
    memory_id = alice.add("The pump leaks.")["id"]
    manifest = alice.get(f"memories/{memory_id}/?{PROVEN}").json["manifest"]
    signed = signed_bytes(manifest)
    key, signature = signing_key().public_key(), read_signature(manifest)
    assert signature is not None
    assert is_signed(key, signed, signature)
    for place in range(len(signed)):
        broken = signed[:place] + bytes([signed[place] ^ 1]) + signed[place + 1 :]
        assert not is_signed(key, broken, signature)


def test_each_manifest_is_in_the_audit_log_with_the_digest_of_what_was_signed(world: World, alice: Contract) -> None:
    memory_id = alice.add("The pump leaks.")["id"]
    manifest = alice.get(f"memories/{memory_id}/?{PROVEN}").json["manifest"]
    with acting(world.olivia.actor):
        row = AuditEntry.objects.get(verb=Verb.MANIFEST_ISSUED)
    assert [str(object_id) for object_id in row.object_ids] == [memory_id]
    assert row.detail == {"manifest": manifest["id"], "key": manifest["key_id"]}
    assert bytes(row.after_hash or b"") == hashlib.sha256(signed_bytes(manifest)).digest()


def test_without_the_audit_log_nothing_leaves(world: World, alice: Contract, superuser: Superuser) -> None:
    memory_id = alice.add("The nightingale sings.")["id"]
    superuser().execute(
        "CREATE FUNCTION no_manifest() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN IF NEW.verb = 'manifest.issued' THEN RAISE EXCEPTION 'full'; END IF; RETURN NEW; END $$; "
        "CREATE TRIGGER no_manifest BEFORE INSERT ON governance_auditentry "
        "FOR EACH ROW EXECUTE FUNCTION no_manifest()"
    )
    for reply in (
        alice.get(f"memories/{memory_id}/?{PROVEN}"),
        alice.get(f"memories/?{PROVEN}"),
        alice.post(f"memories/search/?{PROVEN}", {"query": "nightingale"}),
    ):
        assert (reply.status, reply.code) == (503, "audit_unavailable")
        assert b"nightingale" not in reply.body
    with acting(world.olivia.actor):  # nor is it told that it was read
        assert not AuditEntry.objects.filter(verb__in=[Verb.MEMORY_READ, Verb.MEMORY_LISTED]).exists()


def test_a_manifest_names_nothing_that_its_recipient_may_not_see(alice: Contract, bob: Contract) -> None:
    alice.add("Private.")
    shared = alice.add("Shared.", namespace="/team")["id"]
    items = bob.get(f"memories/?{PROVEN}").json["manifest"]["items"]
    assert [item["memory_id"] for item in items] == [shared]


def test_an_empty_answer_has_a_manifest_of_nothing(bob: Contract, verifier: Check) -> None:
    answer = bob.get(f"memories/?{PROVEN}").json
    assert answer["manifest"]["items"] == []
    assert verifier(answer) == (0, [])


def test_it_is_true_or_false(alice: Contract) -> None:
    memory_id = alice.add("One.")["id"]
    conversation = alice.post("conversations/", {}).json["id"]
    for address in (f"memories/{memory_id}/", "memories/", f"conversations/{conversation}/turns/"):
        assert fields_at_fault(alice.get(f"{address}?provenance=yes")) == {"provenance"}


@pytest.mark.parametrize(
    ("manifest", "verdict"),
    [({}, "malformed"), ({"format": "memos-manifest/1", "key_id": "0", "signature": "AA=="}, "unknown_key")],
)
def test_what_is_no_manifest_of_ours_is_reported(alice: Contract, manifest: Any, verdict: str) -> None:
    assert alice.post("provenance/verify/", {"manifest": manifest}).json == {"valid": False, "verdict": verdict}


def test_only_readers_check_and_the_body_is_strict(world: World, alice: Contract, ada: Contract) -> None:
    assert ada.post("provenance/verify/", {"manifest": {}}).status == 403
    assert fields_at_fault(alice.post("provenance/verify/", {"manifest": []})) == {"manifest"}
    assert fields_at_fault(alice.post("provenance/verify/", {"manifest": {}, "key": "x"})) == {"key"}
    assert contract(world, "charlie").post("provenance/verify/", {"manifest": {}}).status == 200


@pytest.mark.usefixtures("database")
def test_signing_key_is_in_the_key_store_and_stays(key_store_path: Path) -> None:
    first = signing_key()
    key_store.cache_clear()  # as a process that starts now
    assert signing_key().public_key() == first.public_key()
