"""Tests of promise 12: no path changes a byte of a held memory, and removing any protection is detected."""

import random
from pathlib import Path

import psycopg
import pytest

from tests.factories import World
from tests.governance.tables import become
from tests.harness.evidence import Evidence
from tests.vault.holds.attacks import CUBE_SETS, RAW, Attacker
from tests.vault.holds.held import Holding, Superuser, digests, find_changes, holding

pytestmark = pytest.mark.full

SEED = 12
# Each takes away one thing that the promise rests on.
MUTANTS = {
    "no trigger on cubes": "DROP TRIGGER cube_stays_while_held ON vault_cube",
    "no trigger on versions": "DROP TRIGGER version_stays_while_held ON vault_cubeversion",
    "no trigger on subjects": "DROP TRIGGER subject_stays_while_held ON governance_datasubject",
    "holds can be deleted": "GRANT DELETE ON vault_holdcube TO memos_app; "
    "DROP TRIGGER vault_holdcube_rows_stay ON vault_holdcube",
    "one approval is enough": "CREATE OR REPLACE FUNCTION vault_hold_stands(of_tenant uuid, of_hold uuid, "
    "moment timestamptz DEFAULT 'infinity') RETURNS boolean LANGUAGE sql STABLE AS $$ SELECT NOT EXISTS (SELECT 1 "
    "FROM public.vault_holdreleaseapproval WHERE tenant_id = of_tenant AND hold_id = of_hold) $$",
    "the same member twice": "ALTER TABLE vault_holdreleaseapproval DROP CONSTRAINT member_approves_a_release_once; "
    "CREATE OR REPLACE FUNCTION vault_hold_stands(of_tenant uuid, of_hold uuid, "
    "moment timestamptz DEFAULT 'infinity') RETURNS boolean LANGUAGE sql STABLE AS $$ SELECT count(*) < 2 "
    "FROM public.vault_holdreleaseapproval WHERE tenant_id = of_tenant AND hold_id = of_hold $$",
    "two approvals of one transaction": "ALTER TABLE vault_holdreleaseapproval "
    "DROP CONSTRAINT transaction_approves_a_release_once",
    "approvals for others": "ALTER TABLE vault_holdreleaseapproval DROP CONSTRAINT "
    "transaction_approves_a_release_once; DROP TRIGGER approval_is_its_members_own ON vault_holdreleaseapproval",
}


@pytest.fixture
def held(world: World) -> Holding:
    return holding(world)


def test_nothing_changes_a_byte_of_what_is_held(
    world: World,
    held: Holding,
    superuser: Superuser,
    app_connection: psycopg.Connection,
    key_store_path: Path,
    full_size: bool,
    evidence: Evidence,
) -> None:
    times = 10_000 if full_size else 1_000
    before = digests(superuser(), key_store_path)
    attacker = Attacker(world, held, app_connection, random.Random(SEED))
    attacker.attack(times)
    lost = find_changes(before, digests(superuser(), key_store_path))
    assert lost == []
    assert attacker.tried == times
    assert attacker.refused > times * 0.8  # the operations are real ones: see what they do to a free memory
    evidence(
        row=12,
        name="held",
        figures={
            "operations": attacker.tried,
            "refused": attacker.refused,
            "rows and keys compared": len(before),
            "changed": len(lost),
            "mutants": len(MUTANTS),
        },
    )


def test_every_statement_is_refused_or_reaches_nothing(
    world: World, held: Holding, superuser: Superuser, app_connection: psycopg.Connection, key_store_path: Path
) -> None:
    before = digests(superuser(), key_store_path)
    Attacker(world, held, app_connection, random.Random(SEED)).each_statement()
    assert find_changes(before, digests(superuser(), key_store_path)) == []


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_defence_that_is_taken_away_shows(
    world: World,
    held: Holding,
    superuser: Superuser,
    app_connection: psycopg.Connection,
    key_store_path: Path,
    mutant: str,
) -> None:
    before = digests(superuser(), key_store_path)
    superuser().execute(MUTANTS[mutant].encode())
    Attacker(world, held, app_connection, random.Random(SEED)).each_statement()
    assert find_changes(before, digests(superuser(), key_store_path)) != []


def test_the_same_statements_change_what_is_free(
    world: World, held: Holding, app_connection: psycopg.Connection, superuser: Superuser
) -> None:
    """Else their refusals would show nothing."""
    for statement in (
        *(
            f"UPDATE vault_cube SET {change} WHERE id = '{{cube}}'"
            for change in CUBE_SETS
            if not change.startswith("id")
        ),
        *RAW[:1],
    ):
        with app_connection.transaction(force_rollback=True):
            become(app_connection, world.acme.id)
            done = app_connection.execute(statement.replace("{cube}", str(held.free)).encode())
            assert done.rowcount == 1, statement
