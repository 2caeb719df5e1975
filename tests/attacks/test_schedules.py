"""A tenant with many schedules, or one that cannot run, holds up no other tenant's."""

from collections.abc import Callable
from uuid import UUID

import psycopg
import pytest

from governance.errors import DomainError, Forbidden, NotFound, QuotaExceeded, Unavailable
from governance.jobs import schedules
from governance.jobs.schedules import schedules_start
from tests.factories import World
from tests.governance.mutants import mutant
from tests.vault.api.contract import contract

Superuser = Callable[[], psycopg.Connection]
MANY = """
INSERT INTO governance_schedule (id, tenant_id, kind, cron, timezone, enabled, settings, principal_kind, principal_id,
  next_run_at)
SELECT gen_random_uuid(), %s, 'retention.apply', %s, 'UTC', true, '{}', 'api_key', %s, now() - %s * interval '1 minute'
FROM generate_series(1, %s)
"""
STATE = "SELECT enabled, next_run_at > now() FROM governance_schedule WHERE tenant_id = %s"
DAILY = {"kind": "retention.apply", "cron": "0 3 * * *"}
STARTED = "SELECT count(*) FROM governance_schedule WHERE tenant_id = %s AND last_job_id IS NOT NULL"


def _leave(root: psycopg.Connection, tenant_id: UUID, key_id: UUID, *, count: int, late: int, cron: str) -> None:
    root.execute(MANY, [tenant_id, cron, key_id, late, count])


def test_a_schedule_starts_beside_many_of_another_tenant(world: World, superuser: Superuser) -> None:
    root = superuser()
    _leave(root, world.acme.id, world.olivia.key.id, count=schedules.MOST + 20, late=60, cron="* * * * *")
    _leave(root, world.other.id, world.charlie.key.id, count=1, late=1, cron="0 3 * * *")
    schedules_start()
    assert root.execute(STARTED, [world.other.id]).fetchone() == (1,)


def test_a_schedule_whose_time_is_no_time_any_more_is_disabled_and_the_others_start(
    world: World, superuser: Superuser
) -> None:
    """Another release may refuse a cron expression, or a list of zones lose a name."""
    root = superuser()
    _leave(root, world.acme.id, world.olivia.key.id, count=1, late=60, cron="0 0 30 2 *")
    _leave(root, world.other.id, world.charlie.key.id, count=1, late=1, cron="0 3 * * *")
    assert schedules_start() == 1
    assert root.execute(STARTED, [world.other.id]).fetchone() == (1,)
    enabled = root.execute("SELECT enabled FROM governance_schedule WHERE tenant_id = %s", [world.acme.id])
    assert enabled.fetchall() == [(False,)]


@pytest.mark.parametrize(
    ("refusal", "stays"),
    [(QuotaExceeded(""), True), (Unavailable(), True), (Forbidden("", rule=""), False), (NotFound(), False)],
)
def test_schedule_is_disabled_by_a_refusal_that_lasts_and_not_by_one_that_passes(
    world: World, superuser: Superuser, monkeypatch: pytest.MonkeyPatch, refusal: DomainError, stays: bool
) -> None:
    root = superuser()
    _leave(root, world.acme.id, world.olivia.key.id, count=1, late=60, cron="0 3 * * *")

    def refuse(**_: object) -> None:
        raise refusal

    with monkeypatch.context() as refusing:
        refusing.setattr(schedules, "job_create", refuse)
        assert schedules_start() == 0
    assert root.execute(STATE, [world.acme.id]).fetchone() == ((True, True) if stays else (False, None))


def test_schedule_that_any_refusal_disables_shows(
    world: World, superuser: Superuser, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = superuser()
    _leave(root, world.acme.id, world.olivia.key.id, count=1, late=60, cron="0 3 * * *")
    broken = mutant(schedules, "is_over = isinstance(error, LASTING)", "is_over = True")

    def refuse(**_: object) -> None:
        raise QuotaExceeded("")

    monkeypatch.setattr(broken, "job_create", refuse)
    broken.schedules_start()
    assert root.execute(STATE, [world.acme.id]).fetchone() == (False, None)


def test_tenant_has_a_hundred_schedules_at_most(world: World, superuser: Superuser) -> None:
    _leave(superuser(), world.acme.id, world.olivia.key.id, count=99, late=-60, cron="0 3 * * *")
    olivia, charlie = contract(world, "olivia"), contract(world, "charlie")
    assert olivia.post("schedules/", DAILY).status == 201
    refused = olivia.post("schedules/", DAILY)
    assert (refused.status, refused.json["code"]) == (409, "conflict")
    assert charlie.post("schedules/", DAILY).status == 201
