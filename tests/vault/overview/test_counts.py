"""The daily counts: kept by a job, and shown as far as their reader sees the memories."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest

from governance.access.grants.services import GrantDraft, grant_create
from governance.audit.seals import entries_seal
from governance.errors import Forbidden
from governance.vocabulary import Action, Effect, GranteeKind
from tests.factories import World
from tests.vault.outbox import run_jobs
from vault.overview.attention import Waiting, attention_list
from vault.overview.counts import counts_ask
from vault.overview.selectors import Overview, overview_get
from vault.vocabulary import Counted, State

Superuser = Callable[[], psycopg.Connection]


def add(world: World, name: str, content: str, **fields: object) -> str:
    reply = world.client(name).post("memories/", {"content": content, **fields})
    assert reply.status == 201, reply.json
    return str(reply.json["results"][0]["id"])


def overview_of(world: World, name: str, days: int = 7) -> Overview:
    return overview_get(actor=world.person(name).actor, days=days)


def count() -> int:
    asked = counts_ask()
    run_jobs()
    return asked


def test_counts_cover_what_each_reader_sees(world: World) -> None:
    for content in ("Ana travels by train.", "Bo likes tea."):
        add(world, "alice", content, namespace="/team")
    add(world, "alice", "Alice alone knows.")
    add(world, "charlie", "Elsewhere.")
    count()
    assert [overview_of(world, name).memories for name in ("alice", "bob", "olivia", "charlie")] == [3, 2, 3, 1]
    assert dict(overview_of(world, "bob").places) == {"/team": 2}
    assert sum(overview_of(world, "bob").states.values()) == 2
    with pytest.raises(Forbidden):
        overview_of(world, "ada")


def test_a_memory_denied_by_itself_is_in_no_number(world: World) -> None:
    ids = [add(world, "olivia", content, namespace="/team", ttl_seconds=86_400) for content in ("Open.", "Denied.")]
    draft = GrantDraft(
        holder_kind=GranteeKind.MEMBER,
        holder=str(world.bob.member.id),
        object_type="memory",
        object_id=UUID(ids[1]),
        action=Action.READ,
        effect=Effect.DENY,
    )
    grant_create(actor=world.olivia.actor, draft=draft)
    count()
    found = overview_of(world, "bob")
    assert (found.memories, found.is_live) == (1, True)
    assert sum(found.expiring.values()) == 1
    assert [days[-2:] for days in found.series.values()] == [[0, 1]]
    by_state = overview_get(actor=world.bob.actor, days=7, group=Counted.STATE).series
    assert {state: days[-1] for state, days in by_state.items()} == {State.GENERATED: 1}
    assert overview_of(world, "alice").memories == 2


def test_the_first_count_fills_the_days_before_it(world: World, superuser: Superuser) -> None:
    first = add(world, "alice", "Long ago.", namespace="/team")
    add(world, "alice", "Today.", namespace="/team")
    superuser().execute("UPDATE vault_cube SET created_at = now() - interval '3 days' WHERE id = %s", [first])
    count()
    found = overview_of(world, "bob")
    assert [sum(day) for day in zip(*found.series.values(), strict=True)] == [0, 0, 0, 1, 1, 1, 2]
    assert found.growth is None


def test_a_day_without_a_count_shows_the_day_before(world: World, superuser: Superuser) -> None:
    add(world, "alice", "Once.", namespace="/team")
    count()
    superuser().execute("UPDATE vault_dailycount SET day = day - 2")
    found = overview_of(world, "bob")
    assert [sum(day) for day in zip(*found.series.values(), strict=True)][-3:] == [1, 1, 1]
    assert found.memories == 1


def test_what_expires_within_a_week_is_counted_by_day(world: World) -> None:
    for days in (2, 2, 9):
        add(world, "alice", f"Until then: {days}.", namespace="/team", ttl_seconds=days * 86_400, allow_duplicates=True)
    count()
    found = overview_of(world, "bob")
    assert found.expiring == {found.days[-1] + timedelta(days=2): 2}


def test_searches_are_ones_own_but_for_those_who_read_the_log(world: World) -> None:
    add(world, "alice", "Bo likes tea.", namespace="/team")
    world.client("bob").post("memories/search/", {"query": "tea"})
    world.client("alice").post("memories/search/", {"query": "tea", "namespaces": ["/nowhere"]})
    count()
    assert overview_of(world, "bob").searches == {"answered": [0, 0, 0, 0, 0, 0, 1], "empty": [0] * 7}
    assert overview_of(world, "alice").answered_percent == 0
    assert overview_of(world, "olivia").searches_total == 2
    assert overview_of(world, "charlie").searches_total == 0


def test_an_idle_tenant_is_counted_once_a_day(world: World) -> None:
    add(world, "alice", "Once.", namespace="/team")
    run_jobs()
    assert count() == 2
    assert count() == 0
    add(world, "alice", "Twice.", namespace="/team")
    run_jobs()
    assert count() == 1
    assert overview_of(world, "bob").memories == 2


def test_the_log_is_verified_and_a_fault_shows(world: World, superuser: Superuser) -> None:
    add(world, "alice", "Once.", namespace="/team")
    entries_seal(world.acme.id)
    count()
    audit = overview_of(world, "olivia").audit
    assert audit is not None
    assert (audit.upto > 0, audit.fault) == (True, None)
    assert overview_of(world, "alice").audit is None
    root = superuser()
    root.execute("ALTER TABLE governance_auditentry DISABLE TRIGGER USER")
    root.execute("UPDATE governance_auditentry SET verb = 'memory.read' WHERE verb = 'memory.created'")
    root.execute("UPDATE vault_dailycount SET day = day - 1")
    count()
    overview = overview_of(world, "olivia")
    assert overview.audit is not None
    assert overview.audit.fault is not None
    waiting = attention_list(actor=world.olivia.actor, overview=overview)
    assert waiting[0].kind is Waiting.AUDIT


def test_what_waits_is_shown_to_those_who_may_solve_it(world: World) -> None:
    quota = {"holder": {"kind": "tenant"}, "limits": {"memories": 1}}
    add(world, "alice", "Write to ana@example.org soon.", namespace="/team", ttl_seconds=86_400)
    assert world.client("olivia").post("policies/", {"kind": "quota", "name": "q", "document": quota}).status == 201
    count()
    kinds = {
        name: {item.kind for item in attention_list(actor=world.person(name).actor, overview=overview_of(world, name))}
        for name in ("olivia", "alice", "bob", "charlie")
    }
    assert kinds["olivia"] >= {Waiting.REVIEWS, Waiting.EXPIRING, Waiting.QUOTA}
    assert kinds["alice"] == {Waiting.REVIEWS, Waiting.EXPIRING}
    assert kinds["bob"] == kinds["charlie"] == set()
