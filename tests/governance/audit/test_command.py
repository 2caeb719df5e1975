"""`manage.py audit_verify`: exit 0 intact, 1 broken with the first bad row, and how fast."""

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command

from governance.audit.checkpoints import checkpoint_folder, checkpoints_outside
from governance.audit.verification import log_verify
from tests.factories import World
from tests.governance.audit.logs import Bender, entries_make, log_make, seal_all
from tests.harness.cases import each_case
from tests.harness.evidence import Evidence

Superuser = Callable[[], psycopg.Connection]


def verify(*arguments: str) -> tuple[int, dict[str, Any], str]:
    out, err = StringIO(), StringIO()
    code = 0
    try:
        call_command("audit_verify", *arguments, stdout=out, stderr=err)
    except SystemExit as end:
        code = int(str(end.code))
    return code, json.loads(out.getvalue()) if out.getvalue() else {}, err.getvalue()


def exit_code_of_refusal(*arguments: str) -> int:
    """The exit code with which the command says that it checked nothing."""
    with pytest.raises(CommandError) as error:
        call_command("audit_verify", *arguments)
    return error.value.returncode


def test_an_intact_audit_log_is_0_and_says_how_fast(world: World) -> None:
    log_make(world.alice.actor, 30)
    code, found, _ = verify("--json")
    assert (code, found["intact"]) == (0, True)
    acme, other = found["tenants"]
    assert (acme["tenant"], acme["seals"], acme["checkpoint"], acme["first_bad"]) == ("acme", 30, 30, None)
    assert acme["rows_per_second"] > 0
    assert (other["tenant"], other["seals"]) == ("other", 0)
    code, _, told = verify("--tenant", "acme")
    assert code == 0
    assert told.startswith("acme: intact, 30 seals, signed up to seal 30 (")


def test_a_broken_audit_log_is_1_and_names_the_row(world: World, superuser: Superuser) -> None:
    log_make(world.alice.actor, 30)
    bender = Bender(superuser(), world.acme.id)
    seq, entry_id = bender.places()[12]
    bender.set("governance_auditentry", "verb", "memory.read", entry_id)
    code, found, _ = verify("--tenant", "acme", "--json")
    assert (code, found["intact"]) == (1, False)
    (acme,) = found["tenants"]
    assert (acme["first_bad"]["seq"], acme["first_bad"]["entry_id"]) == (seq, str(entry_id))
    code, _, told = verify()
    assert code == 1
    assert f"acme: BROKEN at seal {seq}, entry {entry_id}" in told


def test_exported_checkpoint_reveals_a_change_of_the_servers_own_files(
    world: World, superuser: Superuser, tmp_path: Path
) -> None:
    log_make(world.alice.actor, 30)
    kept = tmp_path / "kept.json"
    kept.write_text(checkpoints_outside(world.acme.id)[-1].text())
    bender = Bender(superuser(), world.acme.id)
    for table in ("governance_auditseal", "governance_auditcheckpoint"):
        bender.run(f"DELETE FROM {table} WHERE tenant_id = %s AND seq > 20", world.acme.id)
    bender.run(
        "DELETE FROM governance_auditentry AS e WHERE tenant_id = %s AND NOT EXISTS "
        "(SELECT 1 FROM governance_auditseal AS s WHERE s.entry_id = e.id)",
        world.acme.id,
    )
    assert verify("--tenant", "acme")[0] == 1
    for file in checkpoint_folder(world.acme.id).iterdir():
        file.unlink()
    code, _, told = verify("--tenant", "acme")
    assert code == 0, "whoever has the machine too is found by a checkpoint elsewhere alone"
    assert "no checkpoint outside the database" in told
    code, _, told = verify("--tenant", "acme", "--checkpoint", str(kept))
    assert code == 1
    assert "BROKEN at seal 21" in told


NO_SEAL = (
    '{"format": "memos-checkpoint-1", "tenant": "x", "seq": "one", "chain_hash": "", "at": "2026-01-01", "key": "", '
)


@each_case(
    "text",
    [b"", b"not json", b"{}", b'{"format": "memos-checkpoint-1"}', b"\xff", f'{NO_SEAL}"signature": ""}}'.encode()],
)
def test_what_is_no_checkpoint_is_refused_with_2_since_nothing_was_checked(
    world: World, tmp_path: Path, text: bytes
) -> None:
    kept = tmp_path / "kept.json"
    kept.write_bytes(text)
    assert exit_code_of_refusal("--tenant", "acme", "--checkpoint", str(kept)) == 2
    assert exit_code_of_refusal("--tenant", "acme", "--checkpoint", str(tmp_path / "no such file")) == 2


def test_a_checkpoint_of_another_tenant_or_key_is_refused(world: World, tmp_path: Path) -> None:
    seal_all(world.acme.id)
    seal_all(world.other.id)
    kept = tmp_path / "kept.json"
    kept.write_text(checkpoints_outside(world.other.id)[0].text())
    assert exit_code_of_refusal("--tenant", "acme", "--checkpoint", str(kept)) == 2
    assert exit_code_of_refusal("--checkpoint", str(kept)) == 2
    assert exit_code_of_refusal("--tenant", "nobody") == 2


def test_a_long_audit_log_is_verified_in_pieces_or_at_once_with_the_same_result(
    world: World, superuser: Superuser, full_size: bool, evidence: Evidence
) -> None:
    """And at the promised rate, where the machine is ours alone."""
    rows = 1_000_000 if full_size else 5_000
    entries_make(world.alice.actor, 1)
    _multiply(superuser, world, rows)
    sealed = seal_all(world.acme.id)
    assert sealed >= rows
    whole = log_verify(world.acme.id, checkpoints=checkpoints_outside(world.acme.id))
    assert (whole.intact, whole.seals, whole.checkpoint) == (True, sealed, sealed)
    first = log_verify(world.acme.id, checkpoints=[], most=sealed // 2)
    rest = log_verify(world.acme.id, checkpoints=[], after=first.upto)
    assert (first.complete, rest.complete, first.seals + rest.seals) == (False, True, sealed)
    _, found, _ = verify("--tenant", "acme", "--json")
    rate = found["tenants"][0]["rows_per_second"]
    evidence(row=7, name="database-rate", figures={"rows": sealed, "rows_per_second": rate})


def _multiply(superuser: Superuser, world: World, rows: int) -> None:
    """Entries as the product writes them, in one statement."""
    superuser().execute(
        "INSERT INTO governance_auditentry (id, tenant_id, principal_kind, principal_id, member_id, verb, outcome, "
        "object_type, object_ids, version, before_hash, after_hash, detail, context, request_id) "
        "SELECT uuidv7(), tenant_id, principal_kind, principal_id, member_id, verb, outcome, object_type, "
        "ARRAY[uuidv7()], 3, sha256('a'), sha256('b'), '{\"mode\": \"hybrid\", \"count\": 5}', "
        '\'{"channel": "api", "address": "127.0.0.1"}\', uuidv7()::text FROM governance_auditentry, '
        "generate_series(1, %s) WHERE tenant_id = %s AND verb = 'memory.updated'",
        [rows, world.acme.id],
    )
