"""Tests of compaction: compacted postings equal the rows during concurrent writes; and when and by whom terms are
compacted.
"""

import struct
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from random import Random
from uuid import UUID

import psycopg
import pytest
from django.db import connections
from django.db.models.functions import Now

from governance.actor import Actor
from governance.database import acting
from governance.errors import Conflict
from governance.keys.services import token_maker
from governance.models import OutboxEvent
from governance.outbox.routes import EventHandler
from governance.vocabulary import Topic
from tests.factories import World
from tests.governance.tables import become
from tests.harness.databases import waiting_for_locks
from tests.harness.product import wait_until
from tests.vault.outbox import run_jobs
from vault.cubes.drafts import CubeChanges, CubeDraft
from vault.cubes.index import compaction
from vault.cubes.index.compaction import compaction_request, words_pack, words_place
from vault.cubes.rules import WORD_KIND
from vault.cubes.screening.redaction import cube_redact
from vault.cubes.services import cube_delete, cube_purge, cube_restore, cube_update, cubes_add
from vault.models import CompactedPostings, CompactedTerm, Compaction, Cube, Posting

Superuser = Callable[[], psycopg.Connection]
Entry = tuple[UUID, int, int, int, int]  # cube, session, position, length, frequency
ENTRY = struct.Struct(">16sqIHH")
COMMON = ("heron", "otter", "badger", "mill", "reed")
STEPS = 80
HERONS = 5


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words of three memories are common, and all that happened has settled."""
    monkeypatch.setattr(compaction, "PACKED_FROM", 3)
    monkeypatch.setattr(compaction, "SETTLED_SECONDS", 0.0)


@pytest.fixture
def alice(world: World) -> Actor:
    return world.alice.actor


@pytest.fixture
def herons(alice: Actor, monkeypatch: pytest.MonkeyPatch) -> list[UUID]:
    """Memories of a heron whose words were never packed."""
    monkeypatch.setattr(compaction, "PACKED_FROM", 1_000)
    ids = _add(alice, *(f"Heron number{number}." for number in range(HERONS)))
    run_jobs()
    monkeypatch.setattr(compaction, "PACKED_FROM", 3)
    return ids


@pytest.fixture
def compacted(alice: Actor, herons: list[UUID]) -> list[UUID]:
    """Memories of a heron, a word that is packed."""
    _pack(alice)
    assert _is_compacted(alice)
    return herons


# What is packed is what the rows say


@pytest.mark.parametrize("seed", range(3))
def test_compacted_postings_equal_the_rows_after_any_writes(
    alice: Actor, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(compaction, "REMADE_AFTER", 0.0)
    random, compacted = Random(seed), 0
    for _ in range(STEPS):
        _anything(alice, random)
        compacted += _checked(alice)
    assert compacted > STEPS


def test_compacted_postings_are_in_the_order_of_their_cubes(alice: Actor) -> None:
    ids = _add(alice, *(f"Heron heron {number} of many." for number in range(4)), session="a walk")
    run_jobs()
    with acting(alice):
        (value,) = CompactedPostings.objects.filter(term=_token(alice, "heron"))
        rows = {row.cube_id: row for row in Posting.objects.filter(term=_token(alice, "heron"))}
    entries = _entries(value.postings)
    assert [entry[0] for entry in entries] == sorted(ids)
    for cube_id, session, position, length, frequency in entries:
        row = rows[cube_id]
        assert (session, position, length, frequency) == (row.session_token, row.position, row.length, 2)


def test_compacted_postings_are_invisible_to_another_tenant(world: World, compacted: list[UUID]) -> None:
    with acting(world.charlie.actor):
        assert not CompactedTerm.objects.exists()
        assert not CompactedPostings.objects.exists()
        assert not Compaction.objects.exists()


def test_newer_memory_leaves_the_term_compacted(alice: Actor, compacted: list[UUID]) -> None:
    _add(alice, "Another heron.")
    assert _is_compacted(alice)
    assert _checked(alice)


def test_an_older_memory_drops_its_words(alice: Actor, compacted: list[UUID]) -> None:
    cube_delete(actor=alice, cube_id=compacted[0])
    _undo_compaction(alice)
    _pack(alice)
    assert _is_compacted(alice)
    cube_restore(actor=alice, cube_id=compacted[0])
    assert not _is_placed(alice)
    assert _checked(alice) == 0


def test_an_erasure_leaves_nothing_of_the_memory(alice: Actor, compacted: list[UUID], superuser: Superuser) -> None:
    values = "SELECT count(*) FROM vault_packedpostings WHERE position(uuid_send(%s) IN postings) > 0"
    assert superuser().execute(values, [compacted[0]]).fetchone() == (1,)
    cube_purge(actor=alice, cube_id=compacted[0])
    assert superuser().execute(values, [compacted[0]]).fetchone() == (0,)
    _undo_compaction(alice)
    _pack(alice)
    assert _is_compacted(alice)
    assert superuser().execute(values, [compacted[0]]).fetchone() == (0,)


def test_the_last_memory_that_has_a_word_takes_its_token_along(
    alice: Actor, compacted: list[UUID], superuser: Superuser
) -> None:
    for cube_id in compacted:
        cube_purge(actor=alice, cube_id=cube_id)
    for table in ("vault_packedword", "vault_packedpostings"):
        query = f"SELECT count(*) FROM {table} WHERE term = %s"
        assert superuser().execute(query.encode(), [_token(alice, "heron")]).fetchone() == (0,)


@pytest.mark.parametrize("trigger", ["inserted", "deleted"])
def test_the_proof_sees_words_that_are_not_dropped(
    alice: Actor, compacted: list[UUID], superuser: Superuser, trigger: str
) -> None:
    cube_delete(actor=alice, cube_id=compacted[0])
    _undo_compaction(alice)
    _pack(alice)
    superuser().execute(f"ALTER TABLE vault_posting DISABLE TRIGGER packed_words_drop_with_{trigger}".encode())
    if trigger == "inserted":
        cube_restore(actor=alice, cube_id=compacted[0])
    else:
        cube_delete(actor=alice, cube_id=compacted[1])
    assert _is_compacted(alice)
    with pytest.raises(AssertionError):
        _checked(alice)


def test_a_posting_that_is_changed_where_it_stands_drops_its_word(
    alice: Actor, compacted: list[UUID], app_connection: psycopg.Connection
) -> None:
    with _writing(app_connection, alice, compacted[0]):
        pass
    assert not _is_placed(alice)


def test_postings_are_not_written_from_an_old_snapshot(
    alice: Actor, compacted: list[UUID], app_connection: psycopg.Connection
) -> None:
    app_connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    with pytest.raises(psycopg.errors.InsufficientPrivilege), _writing(app_connection, alice, compacted[0]):
        pass


# Two at the same time


def test_who_was_writing_before_words_were_placed_is_waited_for(
    alice: Actor, herons: list[UUID], app_connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "MOST_WAITED", 0.0)
    with _writing(app_connection, alice, herons[0]):
        _pack(alice)
        assert _is_placed(alice)
        assert not _is_compacted(alice)
        with acting(alice):
            event = OutboxEvent.objects.get(topic=Topic.WORDS_PLACED)
        assert event.last_error.startswith("Conflict: Memories have been written for long")
    _again(alice)
    assert _is_compacted(alice)
    assert _checked(alice)


def test_the_proof_sees_a_writer_who_is_not_waited_for(
    alice: Actor, herons: list[UUID], app_connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "_await_writers", lambda cursor: None)
    with _writing(app_connection, alice, herons[0]):
        _pack(alice)
    assert _is_compacted(alice)
    with pytest.raises(AssertionError):
        _checked(alice)


def test_compaction_waits_for_transactions_newer_than_the_snapshot(
    alice: Actor, herons: list[UUID], app_connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Transactions of greater ids than any that has ended are in no list of a snapshot."""
    monkeypatch.setattr(compaction, "MOST_WAITED", 0.0)
    with acting(alice):
        words_place(alice, [])()
        writer = _writing(app_connection, alice, herons[0])  # its id is greater than that of the placing
        writer.__enter__()
    with pytest.raises(Conflict), acting(alice):
        words_pack(alice, [])()
    writer.__exit__(None, None, None)
    _step(alice, words_pack)
    assert _is_compacted(alice)
    assert _checked(alice)


def test_who_writes_other_things_is_not_waited_for(
    alice: Actor, herons: list[UUID], app_connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "MOST_WAITED", 0.0)
    with app_connection.transaction():
        become(app_connection, alice.tenant_id)
        app_connection.execute("UPDATE vault_namespacesize SET words = words")
        _pack(alice)
    assert _is_compacted(alice)


def test_term_changed_between_the_steps_is_compacted_later(alice: Actor, herons: list[UUID]) -> None:
    _step(alice, words_place)
    assert _is_placed(alice)
    cube_purge(actor=alice, cube_id=herons[0])
    _step(alice, words_pack)
    assert not _is_placed(alice)
    with acting(alice):
        event = OutboxEvent.objects.get(topic=Topic.WORDS_DUE, done_at=None)
        assert event.available_at > event.created_at + timedelta(seconds=50)
        Compaction.objects.update(packed_at=Now() - timedelta(hours=1))
    _again(alice)
    assert _is_compacted(alice)
    assert _checked(alice)


@pytest.mark.parametrize("commits", [True, False])
def test_a_word_that_is_changed_while_it_is_read_is_not_marked(
    alice: Actor,
    herons: list[UUID],
    app_connection: psycopg.Connection,
    superuser: Superuser,
    monkeypatch: pytest.MonkeyPatch,
    commits: bool,
) -> None:
    """Its writer began after all were waited for, and holds the lock when the word is to be marked."""
    _step(alice, words_place)
    watcher, await_writers = superuser(), compaction._await_writers
    writer = _writing(app_connection, alice, herons[0], commits=commits)

    def then_write(cursor):  # type: ignore[no-untyped-def]
        await_writers(cursor)
        writer.__enter__()

    monkeypatch.setattr(compaction, "_await_writers", then_write)
    with ThreadPoolExecutor(1) as pool:
        packing_it = pool.submit(_apart, lambda: _step(alice, words_pack))
        wait_until(lambda: waiting_for_locks(watcher) == 1, seconds=20)
        writer.__exit__(None, None, None)
        packing_it.result()
    assert _is_compacted(alice) is not commits
    assert _checked(alice) == (0 if commits else 1)


def test_who_changes_a_word_that_is_being_marked_waits_and_drops_it(
    alice: Actor, herons: list[UUID], app_connection: psycopg.Connection, superuser: Superuser
) -> None:
    _step(alice, words_place)
    watcher = superuser()

    def write() -> None:
        with _writing(app_connection, alice, herons[0]):
            pass

    with ThreadPoolExecutor(1) as pool:
        with acting(alice):
            words_pack(alice, [])()
            written = pool.submit(write)
            wait_until(lambda: waiting_for_locks(watcher) == 1, seconds=20)
            assert not written.done()
        written.result()
    assert not _is_placed(alice)
    assert _checked(alice) == 0


# When words are packed


def test_compaction_is_a_job_of_two_steps_that_delays_no_embedding(alice: Actor, herons: list[UUID]) -> None:
    with acting(alice):
        compaction_request(alice)
        compaction_request(alice)
        assert _open(Topic.WORDS_DUE) == 1
    _step(alice, words_place)
    with acting(alice):
        assert _open(Topic.WORDS_PLACED) == 1
    assert _is_placed(alice)
    assert not _is_compacted(alice)
    run_jobs()
    assert _is_compacted(alice)
    _again(alice)  # who asked between the steps looks once more
    with acting(alice):
        assert _open(Topic.WORDS_DUE) == _open(Topic.WORDS_PLACED) == 0


def test_words_are_counted_in_all_namespaces_together(alice: Actor) -> None:
    for namespace in ("/a", "/b", "/c"):
        cubes_add(actor=alice, drafts=[CubeDraft(content="A heron.", namespace=namespace)])
    run_jobs()
    assert _is_compacted(alice)
    with acting(alice):
        assert CompactedPostings.objects.filter(term=_token(alice, "heron")).count() == 3
    assert _checked(alice)


def test_what_was_made_a_moment_ago_is_left_to_its_rows(
    alice: Actor, compacted: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "SETTLED_SECONDS", 3_600.0)
    _undo_compaction(alice)
    _step(alice, words_place)
    assert not _is_placed(alice)


def test_all_terms_are_compacted_anew_after_a_quarter_of_growth(alice: Actor, compacted: list[UUID]) -> None:
    _add(alice, "A heron.")
    run_jobs()
    with acting(alice):
        assert not _is_due(alice)
        assert Compaction.objects.get().cubes == HERONS
        until = CompactedTerm.objects.get(term=_token(alice, "heron")).until
    (last,) = _add(alice, "One more heron.")
    run_jobs()
    with acting(alice):
        assert Compaction.objects.get().cubes == HERONS + 2
        assert CompactedTerm.objects.get(term=_token(alice, "heron")).until == last > until
    assert _checked(alice)


def test_words_that_are_missing_are_due_after_a_while(alice: Actor, compacted: list[UUID]) -> None:
    _edit(alice, compacted[0], "An otter.")
    run_jobs()
    assert not _is_placed(alice)
    with acting(alice):
        assert not _is_due(alice)
        assert _open(Topic.WORDS_DUE) == 1
        Compaction.objects.update(packed_at=Now() - timedelta(hours=1))
        assert _is_due(alice)
    _again(alice)
    assert _is_compacted(alice)
    with acting(alice):
        assert not _is_due(alice)
        assert Compaction.objects.get().cubes == HERONS


def test_what_was_asked_for_too_early_is_asked_for_again(alice: Actor, compacted: list[UUID]) -> None:
    _edit(alice, compacted[0], "An otter.")
    run_jobs()
    _again(alice)
    assert not _is_placed(alice)
    with acting(alice):
        event = OutboxEvent.objects.get(topic=Topic.WORDS_DUE, done_at=None)
        assert event.available_at > event.created_at + timedelta(seconds=50)


def test_term_that_became_rare_is_not_compacted_again(alice: Actor, compacted: list[UUID]) -> None:
    for cube_id in compacted[:3]:
        cube_purge(actor=alice, cube_id=cube_id)
    _undo_compaction(alice)
    _pack(alice)
    assert not _is_placed(alice)
    with acting(alice):
        assert not _is_due(alice)


@pytest.mark.parametrize("step", [words_place, words_pack])
def test_two_jobs_are_not_at_the_words_of_a_tenant_at_once(
    alice: Actor, herons: list[UUID], superuser: Superuser, step: EventHandler
) -> None:
    _step(alice, words_place)
    other = superuser()
    with other.transaction():
        other.execute(compaction.ALONE, [str(alice.tenant_id)])
        _undo_compaction(alice)
        with pytest.raises(Conflict):
            _step(alice, step)
    assert not _is_compacted(alice)


def _anything(actor: Actor, random: Random) -> None:
    """One of the things that change postings, or the jobs that follow them."""
    with acting(actor):
        present = list(Cube.objects.filter(deleted_at=None).order_by("id").values_list("id", "version"))
        deleted = list(Cube.objects.exclude(deleted_at=None).order_by("id").values_list("id", flat=True))
    chosen = random.choice(["add", "add", "edit", "move", "delete", "restore", "purge", "redact", "jobs", "jobs"])
    if chosen == "add" or not present:
        _add(actor, *(_random_text(random) for _ in range(random.randint(1, 4))), session=random.choice(["", "a walk"]))
    elif chosen == "jobs":
        run_jobs()
    elif chosen == "restore":
        if deleted:
            cube_restore(actor=actor, cube_id=random.choice(deleted))
    else:
        cube_id, version = random.choice(present)
        if chosen == "edit":
            _edit(actor, cube_id, _random_text(random), version)
        elif chosen == "move":
            changes = CubeChanges(namespace=random.choice(["/a", "/b"]))
            cube_update(actor=actor, cube_id=cube_id, expected_versions={version}, changes=changes)
        elif chosen == "delete":
            cube_delete(actor=actor, cube_id=cube_id)
        elif chosen == "purge":
            cube_purge(actor=actor, cube_id=cube_id)
        else:
            cube_redact(actor=actor, cube_id=cube_id, number=version)


def _random_text(random: Random) -> str:
    return " ".join([*random.choices(COMMON, k=random.randint(2, 5)), f"number{random.randint(0, 10**9)}"]) + "."


def _add(actor: Actor, *contents: str, session: str = "") -> list[UUID]:
    drafts = [CubeDraft(content=content, session_id=session) for content in contents]
    return [added.cube.id for added in cubes_add(actor=actor, drafts=drafts)]


def _edit(actor: Actor, cube_id: UUID, content: str, version: int = 1) -> None:
    changes = CubeChanges(content=content)
    cube_update(actor=actor, cube_id=cube_id, expected_versions={version}, changes=changes)


def _pack(actor: Actor) -> None:
    """Run the compaction that an indexing job asks for, as far as possible."""
    with acting(actor):
        compaction_request(actor)
    run_jobs()


def _step(actor: Actor, step: EventHandler) -> None:
    with acting(actor):
        step(actor, [])()


def _again(actor: Actor) -> None:
    """Time has passed: what is open is due."""
    with acting(actor):
        OutboxEvent.objects.filter(done_at=None).update(available_at=Now())
    run_jobs()


def _undo_compaction(actor: Actor) -> None:
    """It is as if the tenant had never been packed, but for what is packed."""
    with acting(actor):
        Compaction.objects.all().delete()


def _apart(done: Callable[[], None]) -> None:
    """In a thread with a connection of its own."""
    try:
        done()
    finally:
        connections.close_all()


@contextmanager
def _writing(app: psycopg.Connection, actor: Actor, cube_id: UUID, *, commits: bool = True) -> Iterator[None]:
    """A transaction that has changed the postings of a cube, and ends with the block."""
    with app.transaction(force_rollback=not commits):
        become(app, actor.tenant_id)
        app.execute("UPDATE vault_posting SET frequency = frequency + 7 WHERE cube_id = %s", [cube_id])
        yield


def _token(actor: Actor, word: str) -> int:
    return token_maker(actor.tenant_id).token(WORD_KIND, word)


def _is_placed(actor: Actor) -> bool:
    with acting(actor):
        return CompactedTerm.objects.filter(term=_token(actor, "heron")).exists()


def _is_compacted(actor: Actor) -> bool:
    with acting(actor):
        return CompactedTerm.objects.filter(term=_token(actor, "heron"), is_packed=True).exists()


def _open(topic: Topic) -> int:
    return OutboxEvent.objects.filter(topic=topic, done_at=None).count()


def _checked(actor: Actor) -> int:
    """Count the compacted terms, and compare each with its rows."""
    with acting(actor):
        until = dict(CompactedTerm.objects.filter(is_packed=True).values_list("term", "until"))
        compacted = {
            (value.term, value.namespace_id): _entries(value.postings) for value in CompactedPostings.objects.all()
        }
        rows = list(Posting.objects.filter(term__in=until, frequency__gt=0).order_by("cube_id"))
    expected: dict[tuple[int, UUID], list[Entry]] = defaultdict(list)
    for row in rows:
        if row.cube_id <= until[row.term]:
            entry = (row.cube_id, row.session_token or 0, row.position or 0, row.length, row.frequency)
            expected[row.term, row.namespace_id].append(entry)
    assert compacted == expected
    return len(until)


def _entries(value: bytes | memoryview) -> list[Entry]:
    return [(UUID(bytes=cube), *numbers) for cube, *numbers in ENTRY.iter_unpack(bytes(value))]


def _is_due(actor: Actor) -> bool:
    """The tenant has grown or shrunk, or words are missing for long."""
    has_changed, seconds = compaction._due(actor)
    return has_changed or (seconds is not None and seconds <= 0)
