"""Checkpoints and mails where machines share a blob store, and each folder of the data directory with its reason."""

import json
import re
import shutil
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from pytest_django import Settings

from governance.audit.checkpoint_copies import PREFIX
from governance.audit.checkpoint_sharing import copies_send
from governance.audit.checkpoints import checkpoint_folder, checkpoints_outside
from governance.audit.verifier import Unreadable
from governance.shared_files import MAIL, shared_files_discard
from tests.factories import World
from tests.governance.audit.logs import Bender, Superuser, first_fault, log_make
from tests.vault.api.contract import Contract, contract
from tests.vault.outbox import run_jobs
from tests.vault.stores import new_bucket, s3_server
from vault.providers.registry import blob_store

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = {
    "blobs": "of one machine alone: machines share a bucket",
    "checkpoints": "also in the shared store, which every machine compares with",
    "exports": "also in the shared store; what is here is a cache",
    "keys": "of one machine alone: machines share MEMOS_KEY_STORE_URL",
    "logs": "of the supervisor, which runs one machine",
    "mail": "without a shared store alone",
    "pg": "the embedded PostgreSQL: one machine",
    "receipts": "a copy of what the database has and `tenant_delete --receipt` prints",
    "redis": "the embedded Redis: one machine",
    "run": "sockets and numbers of this machine's processes",
}
FILES = {"address", "first-run.json", "engine-token"}  # of the supervisor and the engine of one machine


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with s3_server() as address:
        yield address


@pytest.fixture
def olivia(world: World, settings: Settings, endpoint: str) -> Contract:
    settings.MEMOS_BLOB_STORE = new_bucket(endpoint)
    return contract(world, "olivia")


def test_a_machine_without_files_compares_with_the_checkpoints_that_another_signed(
    world: World, olivia: Contract, superuser: Superuser
) -> None:
    log_make(world.alice.actor, 60)
    signed = checkpoints_outside(world.acme.id)
    assert copies_send() == len(signed)
    assert copies_send() == 0, "each is sent once"
    shutil.rmtree(checkpoint_folder(world.acme.id))  # as on a machine that signed none of them
    assert checkpoints_outside(world.acme.id) == signed
    assert checkpoints_outside(world.acme.id, newest_file=True) == signed
    bender = Bender(superuser(), world.acme.id)
    bender.run("DELETE FROM governance_auditcheckpoint")
    last, _ = bender.places()[-1]
    bender.run("DELETE FROM governance_auditseal WHERE tenant_id = %s AND seq = %s", world.acme.id, last)
    fault = first_fault(world.acme.id, checkpoints_outside(world.acme.id))
    assert fault is not None, "a seal that is cut off shows on that machine, too"


def test_a_changed_checkpoint_in_the_store_is_reported(world: World, olivia: Contract) -> None:
    log_make(world.alice.actor, 20)
    copies_send()
    shutil.rmtree(checkpoint_folder(world.acme.id))
    last = max(entry.name for entry in blob_store().entries(f"{PREFIX}/{world.acme.id}/"))
    blob_store().write(last, b"{")
    with pytest.raises(Unreadable):
        checkpoints_outside(world.acme.id)


def test_checkpoints_signed_without_a_store_are_sent_once_there_is_one(
    world: World, olivia: Contract, settings: Settings
) -> None:
    log_make(world.alice.actor, 20)
    bucket, settings.MEMOS_BLOB_STORE = (
        settings.MEMOS_BLOB_STORE,
        type(settings.MEMOS_BLOB_STORE)("", "", "", "", "", ""),
    )
    assert copies_send() == 0
    settings.MEMOS_BLOB_STORE = bucket
    log_make(world.alice.actor, 40)
    assert copies_send() == len(checkpoints_outside(world.acme.id))


def test_mail_without_a_server_is_printed_on_every_machine_and_sealed_in_the_store(
    world: World, olivia: Contract, settings: Settings, mailoutbox: list[object]
) -> None:
    settings.EMAIL_HOST = ""
    assert olivia.post("invitations/", {"email": "new@acme.example", "role": "editor"}).status == 201
    run_jobs()
    assert not mailoutbox
    printed = StringIO()
    call_command("mails", "--tenant", "acme", "--json", stdout=printed)
    (mail,) = json.loads(printed.getvalue())["mails"]
    assert (mail["To"], "/join/" in mail["Text"] or "http" in mail["Text"]) == ("new@acme.example", True)
    (entry,) = blob_store().entries(f"{MAIL}/{world.acme.id}/")
    assert b"new@acme" not in (blob_store().read(entry.name) or b"")
    shared_files_discard(world.acme.id)
    assert not list(blob_store().entries(f"{MAIL}/"))


def test_each_folder_of_the_data_directory_is_named_with_the_reason_why_it_is_no_obstacle() -> None:
    found: set[str] = set()
    for package in ("memos_web", "governance", "vault"):
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            found |= set(
                re.findall(r"(?:DATA_DIR|data_dir\)?|environ\.get\(\"MEMOS_DATA_DIR\"\)[^/\n]*) / \"([\w.-]+)\"", text)
            )
    assert found <= FOLDERS.keys() | FILES, "a new folder needs its reason: machines share none"
    assert {"checkpoints", "exports", "keys", "logs", "mail", "pg", "receipts", "redis", "run"} <= found
    table = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    assert [name for name in FOLDERS if f"`{name}/" not in table] == []
