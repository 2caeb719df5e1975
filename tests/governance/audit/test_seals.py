"""Sealing: every committed entry gets its place in its tenant's chain, soon, once, and alone in its tenant."""

import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise

import psycopg
from django.db import connections
from django.test import override_settings

from governance.audit.checkpoints import checkpoint_folder, checkpoint_write, checkpoints_outside, public_key
from governance.audit.lines import IN_UTC, LINE
from governance.audit.sealer import seal_forever, seal_once, sign_once
from governance.audit.seals import entries_seal, find_tenants_with_unsealed
from governance.audit.services import record
from governance.audit.verifier import COLUMNS, GENESIS, is_signed
from governance.database import acting, tenant_transaction
from governance.models import AuditCheckpoint, AuditEntry, AuditSeal, AuditUnsealed
from governance.vocabulary import Verb
from tests.factories import Person, World
from tests.governance.audit.logs import entries_make, first_fault, seal_all
from tests.harness.cases import each_case
from tests.harness.product import wait_until

Superuser = Callable[[], psycopg.Connection]


def _seals(person: Person) -> list[AuditSeal]:
    with acting(person.actor):
        return list(AuditSeal.objects.order_by("seq"))


def _count_unsealed(person: Person) -> int:
    with acting(person.actor):
        return AuditUnsealed.objects.count()


def test_every_entry_is_queued_for_its_seal_in_its_own_transaction(world: World) -> None:
    waiting = _count_unsealed(world.alice)
    with suppress(LookupError), acting(world.alice.actor):
        record(actor=world.alice.actor, verb=Verb.MEMORY_READ, object_type="memory", object_ids=[])
        raise LookupError
    assert _count_unsealed(world.alice) == waiting
    entries_make(world.alice.actor, 2)
    assert _count_unsealed(world.alice) == waiting + 2


def test_an_entry_that_raw_sql_wrote_is_queued_too(world: World, superuser: Superuser) -> None:
    seal_all(world.acme.id)
    superuser().execute(
        "INSERT INTO governance_auditentry (id, tenant_id, principal_kind, principal_id, verb, outcome, object_type, "
        "object_ids, detail, context, request_id) VALUES "
        "(gen_random_uuid(), %s, 'system', gen_random_uuid(), 'x', 'done', 'x', '{}', '{}', '{}', 'x')",
        [world.acme.id],
    )
    assert world.acme.id in find_tenants_with_unsealed()
    assert entries_seal(world.acme.id) == 1


def test_the_chain_has_no_gap_and_begins_at_genesis(world: World) -> None:
    seal_all(world.acme.id)
    entries_make(world.alice.actor, 5)
    while entries_seal(world.acme.id, batch=2):
        pass
    seals = _seals(world.alice)
    assert [seal.seq for seal in seals] == list(range(1, len(seals) + 1))
    assert bytes(seals[0].previous_hash).hex().encode() == GENESIS
    for former, seal in pairwise(seals):
        assert bytes(seal.previous_hash) == bytes(former.chain_hash)
    assert _count_unsealed(world.alice) == 0


def test_each_tenant_has_a_chain_of_its_own(world: World) -> None:
    seal_once()
    for person in (world.alice, world.charlie):
        assert _seals(person)[0].seq == 1
        with acting(person.actor):
            assert AuditSeal.objects.count() == AuditEntry.objects.count()


def test_an_entry_whose_commit_came_late_is_sealed_after_younger_ones(world: World) -> None:
    """Its id is older than the last that has a seal: "newer than the last" would miss it for ever."""
    started, finish = threading.Event(), threading.Event()

    def slow() -> None:
        with acting(world.bob.actor):
            record(actor=world.bob.actor, verb=Verb.MEMORY_READ, object_type="late", object_ids=[])
            started.set()
            finish.wait(timeout=10)
        connections.close_all()

    thread = threading.Thread(target=slow)
    thread.start()
    assert started.wait(timeout=10)
    entries_make(world.alice.actor, 3)
    seal_all(world.acme.id)
    finish.set()
    thread.join(timeout=10)
    assert entries_seal(world.acme.id) == 1
    with acting(world.olivia.actor):
        late = AuditEntry.objects.get(object_type="late")
        assert AuditSeal.objects.get(entry=late).seq == AuditSeal.objects.count()
    assert first_fault(world.acme.id, checkpoints_outside(world.acme.id)) is None


def test_two_sealers_at_once_leave_one_chain(world: World) -> None:
    entries_make(world.alice.actor, 60)
    barrier, sealed = threading.Barrier(3), []

    def seal() -> None:
        barrier.wait(timeout=10)
        while count := entries_seal(world.acme.id, batch=5):
            sealed.append(count)
        connections.close_all()

    threads = [threading.Thread(target=seal) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert sum(sealed) == len(_seals(world.alice))
    assert first_fault(world.acme.id, []) is None


def test_a_queue_row_that_somebody_added_seals_nothing_twice(world: World, superuser: Superuser) -> None:
    seal_all(world.acme.id)
    count = len(_seals(world.alice))
    superuser().execute(
        "INSERT INTO governance_auditunsealed (id, tenant_id) SELECT id, tenant_id FROM governance_auditentry "
        "WHERE tenant_id = %s",
        [world.acme.id],
    )
    entries_make(world.alice.actor, 1)
    seal_all(world.acme.id)
    assert len(_seals(world.alice)) == count + 1
    assert _count_unsealed(world.alice) == 0


def test_the_sealer_seals_within_a_second_and_bears_a_failure(world: World, superuser: Superuser) -> None:
    stop = threading.Event()
    superuser().execute("REVOKE INSERT ON governance_auditseal FROM memos_app")
    thread = threading.Thread(target=seal_forever, args=(stop,))
    thread.start()
    try:
        superuser().execute("GRANT INSERT ON governance_auditseal TO memos_app")
        wait_until(lambda: _count_unsealed(world.alice) == 0, seconds=10)
        entries_make(world.alice.actor, 10)
        wait_until(lambda: _count_unsealed(world.alice) == 0, seconds=1)
    finally:
        stop.set()
        thread.join(timeout=10)
    assert not thread.is_alive()


def test_one_tenant_that_cannot_be_sealed_holds_up_no_other(world: World, superuser: Superuser) -> None:
    superuser().execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$"
    )
    superuser().execute(
        "CREATE TRIGGER refuse BEFORE INSERT ON governance_auditseal FOR EACH ROW "
        f"WHEN (NEW.tenant_id = '{world.acme.id}') EXECUTE FUNCTION refuse()".encode()
    )
    assert seal_once() > 0
    assert _count_unsealed(world.charlie) == 0
    assert _count_unsealed(world.alice) > 0


# Checkpoints


def test_a_checkpoint_is_signed_and_lies_outside_the_database_for_its_owner_only(world: World) -> None:
    seal_all(world.acme.id)
    (checkpoint,) = checkpoints_outside(world.acme.id)
    assert is_signed(checkpoint, public_key(world.acme.id))
    assert not is_signed(checkpoint, public_key(world.other.id))
    with acting(world.olivia.actor):
        assert AuditCheckpoint.objects.get().text == checkpoint.text()
        assert checkpoint.seq == AuditSeal.objects.count()
    (file,) = checkpoint_folder(world.acme.id).iterdir()
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


@each_case("field", ["seq", "chain_hash", "at", "tenant", "key", "signature"])
def test_a_checkpoint_that_was_changed_in_any_field_is_not_signed(world: World, field: str) -> None:
    seal_all(world.acme.id)
    (checkpoint,) = checkpoints_outside(world.acme.id)
    values = vars(checkpoint)
    changed = values[field] + 1 if field == "seq" else "0" + values[field][1:] if values[field][0] != "0" else "1"
    if field in {"signature", "chain_hash"} and changed == "1":
        changed = "1" + values[field][1:]
    assert not is_signed(type(checkpoint)(**(values | {field: changed})), public_key(world.acme.id))


def test_no_checkpoint_is_signed_twice_for_one_place(world: World) -> None:
    assert checkpoint_write(world.acme.id) is None
    seal_all(world.acme.id)
    again = checkpoint_write(world.acme.id)
    assert again == checkpoints_outside(world.acme.id)[0]
    assert len(checkpoints_outside(world.acme.id)) == 1


def test_checkpoints_come_due_by_time_and_by_number(world: World, superuser: Superuser) -> None:
    seal_once()
    assert sign_once() == 2  # the first of both tenants
    assert sign_once() == 0
    entries_make(world.alice.actor, 3)
    seal_once()
    assert sign_once() == 0
    with override_settings(AUDIT_CHECKPOINT_SEALS=3):
        assert sign_once() == 1
    entries_make(world.alice.actor, 1)
    seal_once()
    with override_settings(AUDIT_CHECKPOINT_SECONDS=0):
        assert sign_once() == 1
    with tenant_transaction(world.acme.id):
        assert AuditCheckpoint.objects.count() == len(checkpoints_outside(world.acme.id)) == 3


def test_a_checkpoint_says_until_when_everything_is_sealed(world: World, superuser: Superuser) -> None:
    """With a backlog it is dated before the oldest that waits, or its successors would look backdated."""
    seal_all(world.acme.id)
    entries_make(world.alice.actor, 1)
    superuser().execute("UPDATE governance_auditunsealed SET created_at = '2001-01-01T00:00:00Z'")
    entries_seal(world.acme.id)
    entries_make(world.alice.actor, 1)
    superuser().execute("UPDATE governance_auditunsealed SET created_at = '2001-01-01T00:00:00Z'")
    checkpoint = checkpoint_write(world.acme.id)
    assert checkpoint is not None
    assert checkpoint.at.startswith("2001-01-01T00:00:00")


def test_the_line_of_an_entry_is_what_postgresql_writes_of_a_row_as_json(world: World, superuser: Superuser) -> None:
    """So is what was sealed before it was put together by hand, and whatever a superuser writes into a row."""
    entries_make(world.alice.actor, 8)
    connection = superuser()
    connection.execute("SET session_replication_role = replica")
    connection.execute(
        "UPDATE governance_auditentry SET verb = E'a\",\"b\\\\\\n\\t', request_id = E'\\x01 中文', at = 'infinity' "
        "WHERE id = (SELECT id FROM governance_auditentry ORDER BY id DESC LIMIT 1)"
    )
    connection.execute("UPDATE governance_auditentry SET member_id = NULL, version = NULL WHERE version = 3")
    connection.execute(IN_UTC)
    values = ", ".join(f"encode({name}, 'hex') AS {name}" if name.endswith("_hash") else name for name in COLUMNS)
    rows = connection.execute(
        f"SELECT {LINE}, row_to_json(whole)::text FROM governance_auditentry AS entry "
        f"CROSS JOIN LATERAL (SELECT {values}) AS whole"
    ).fetchall()
    assert len(rows) >= 8
    for line, whole in rows:
        assert line == whole
