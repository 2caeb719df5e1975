"""Tests of unusual reads: by memory and by reader; constant heavy use is not unusual."""

from collections.abc import Callable
from uuid import UUID

import psycopg
import pytest

from governance.audit.reading.rules import FEWEST_READS, LIMIT, is_unusual, measure_usual, score
from governance.audit.reading.unusual import ReadBy, unusual_reading
from governance.database import acting
from governance.errors import Forbidden
from governance.ids import uuid7
from governance.models import AuditEntry
from governance.vocabulary import Verb
from tests.factories import Person, World

READ = """
INSERT INTO governance_auditentry (id, tenant_id, at, principal_kind, principal_id, verb, outcome, object_type,
  object_ids, detail, context, request_id)
SELECT uuidv7(now() - clock_timestamp() - make_interval(days => %(days)s)), %(tenant)s,
  now() - make_interval(days => %(days)s, mins => 5), 'member', %(who)s, %(verb)s, %(outcome)s, 'memory',
  ARRAY[%(what)s::uuid], '{}', '{}', 'r' FROM generate_series(1, %(times)s)
"""


def _add_reads(
    superuser: psycopg.Connection,
    person: Person,
    what: UUID,
    times: int,
    *,
    days: int = 0,
    who: UUID | None = None,
    verb: Verb = Verb.MEMORY_READ,
    outcome: str = "done",
) -> None:
    superuser.execute(
        READ,
        {
            "days": days,
            "tenant": person.member.tenant_id,
            "who": who or person.member.id,
            "what": what,
            "times": times,
            "verb": verb,
            "outcome": outcome,
        },
    )


@pytest.fixture
def bent(superuser: Callable[[], psycopg.Connection]) -> psycopg.Connection:
    return superuser()


def _unusual_ids(world: World, by: ReadBy) -> list[UUID]:
    return [reading.id for reading in unusual_reading(actor=world.ada.actor) if reading.by is by]


def test_a_memory_that_is_suddenly_read_much_is_named(world: World, bent: psycopg.Connection) -> None:
    steady, sudden, few = uuid7(), uuid7(), uuid7()
    for day in range(1, 29):
        _add_reads(bent, world.alice, steady, 50, days=day)
        _add_reads(bent, world.alice, sudden, 2, days=day)
    _add_reads(bent, world.alice, steady, 52)
    _add_reads(bent, world.alice, sudden, 52)
    _add_reads(bent, world.alice, few, FEWEST_READS - 1)
    assert _unusual_ids(world, ReadBy.OBJECT) == [sudden]
    (found,) = [reading for reading in unusual_reading(actor=world.ada.actor) if reading.by is ReadBy.OBJECT]
    assert (found.reads, found.usual.median) == (52, 2)
    assert found.score > LIMIT


def test_a_principal_who_suddenly_reads_much_is_named(world: World, bent: psycopg.Connection) -> None:
    usual, unusual = uuid7(), uuid7()
    for day in range(1, 29):
        _add_reads(bent, world.alice, uuid7(), 40, days=day, who=usual)
    _add_reads(bent, world.alice, uuid7(), 40, who=usual)
    for _ in range(40):
        _add_reads(bent, world.alice, uuid7(), 1, who=unusual)
    assert _unusual_ids(world, ReadBy.PRINCIPAL) == [unusual]
    assert _unusual_ids(world, ReadBy.OBJECT) != []


def test_writes_and_denials_are_no_reads(world: World, bent: psycopg.Connection) -> None:
    _add_reads(bent, world.alice, uuid7(), 100, verb=Verb.MEMORY_UPDATED)
    _add_reads(bent, world.alice, uuid7(), 100, verb=Verb.MEMORY_READ, outcome="denied")
    assert unusual_reading(actor=world.ada.actor) == []


def test_the_other_tenants_reads_are_not_counted(world: World, bent: psycopg.Connection) -> None:
    _add_reads(bent, world.charlie, uuid7(), 100)
    assert unusual_reading(actor=world.ada.actor) == []


@pytest.mark.parametrize("who", ["alice", "bob"])
def test_who_may_not_read_the_audit_log_learns_nothing(world: World, who: str) -> None:
    with pytest.raises(Forbidden):
        unusual_reading(actor=world.person(who).actor)


def test_asking_is_in_the_audit_log(world: World) -> None:
    unusual_reading(actor=world.ada.actor)
    with acting(world.ada.actor):
        assert AuditEntry.objects.get(verb=Verb.AUDIT_REPORTED).detail == {"report": "unusual_reads", "rows": 0}


@pytest.mark.parametrize(
    ("days", "reads", "unusual"),
    [
        ([0] * 28, FEWEST_READS - 1, False),
        ([0] * 28, FEWEST_READS, True),
        ([100] * 28, 104, False),
        ([100] * 28, 106, True),
        ([0, 200] * 14, 300, False),
        ([50] * 27 + [5000], 56, True),
    ],
)
def test_the_rule(days: list[int], reads: int, unusual: bool) -> None:
    assert is_unusual(reads, measure_usual(days)) is unusual


def test_the_score_is_the_modified_z_score() -> None:
    usual = measure_usual([1, 2, 3, 4, 5, 6, 7])
    assert (usual.median, usual.spread) == (4, 2)
    assert score(14, usual) == pytest.approx(0.6745 * 10 / 2)
