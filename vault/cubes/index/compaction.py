"""The postings of words that many memories of a tenant contain, kept packed: a search reads one value for many rows.

A word that is packed has its postings up to one cube, `until`, exactly as they are committed; later ones are read as
rows. New cubes have greater ids, so adding leaves what is packed as it is. Whoever changes an older posting drops its
words, packed or only placed, in the same transaction (the triggers of vault/migrations/0003_functions.py): an
erasure leaves nothing behind, and the job that follows a later write packs the word again.

Packing has two steps, each a transaction of its own. The first *places* words: it says which are about to be packed.
The second waits for all who were writing postings then, reads, and marks those words as packed that are still placed.
So none is stale. A writer whose trigger did not see the placed word held its lock on the postings before the word was
committed: it was waited for, and what it did is read. Any other has seen the word, and drops it before it commits:
either the word is gone when it is to be marked, or its writer waits for the mark and takes it away. Nobody waits for
the reading itself, only for the moment of marking (DROPPING). Triggers see what was committed last because postings
are written in READ COMMITTED alone. One job at a time is at a tenant's words: else one could place what another marks.
"""

import time
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from django.db import connection
from django.db.backends.utils import CursorWrapper

from governance.actor import Actor
from governance.database import database_now
from governance.errors import Conflict
from governance.ids import uuid7_floor
from governance.outbox.routes import Payload, Write
from governance.outbox.services import emit, emit_later, is_asked
from governance.vocabulary import Topic
from vault.cubes.index.facets import FACETS

PACKED_FROM = 1_000  # cubes of a tenant that contain a word
GROWTH = 1.25
REMADE_AFTER = 60.0  # seconds: until words that were dropped are packed again
SETTLED_SECONDS = 3.0  # younger cubes stay rows: others made at the same time may not be committed yet
MOST_WAITED = 2.0  # seconds for writers that began before words were placed
POLL_SECONDS = 0.05

# 32 bytes of a `posting`: its cube; its session; its position (32 bits), length (16) and frequency (16).
ENTRY = (
    "uuid_send(posting.cube_id) || int8send(coalesce(posting.session_token, 0)) || "
    "int8send((coalesce(posting.position, 0)::bigint << 32) | (posting.length::bigint << 16) | posting.frequency)"
)

# Both rules at once: whether the tenant has grown or shrunk; for how long dropped words still wait, if there are any.
DUE = """
SELECT greatest(present.cubes, former.cubes) >= %s
    AND greatest(present.cubes, former.cubes) > %s::float8 * least(present.cubes, former.cubes),
  CASE WHEN former.words > (SELECT count(*) FROM vault_packedword WHERE tenant_id = %s AND is_packed)
    THEN %s::float8 - extract(epoch FROM clock_timestamp() - former.packed_at)::float8 END
FROM (SELECT coalesce(sum(cubes), 0) AS cubes FROM vault_namespacesize WHERE tenant_id = %s) AS present,
  (SELECT coalesce(sum(cubes), 0) AS cubes, coalesce(sum(words), 0) AS words, max(packed_at) AS packed_at
   FROM vault_packing WHERE tenant_id = %s) AS former
"""
ALONE = "SELECT pg_try_advisory_xact_lock(hashtextextended('packing ' || %s, 0))"
DROPPING = "SELECT pg_advisory_xact_lock(hashtextextended('packed words ' || %s, 0))"  # as the triggers take it
PATIENTLY = "SET LOCAL statement_timeout = '10min'"

COUNT = """
SELECT term FROM vault_posting WHERE tenant_id = %s AND frequency > 0
GROUP BY term HAVING count(*) >= %s ORDER BY term
"""
UNTIL = "SELECT id FROM vault_cube WHERE tenant_id = %s AND id < %s ORDER BY id DESC LIMIT 1"
FORGET = "DELETE FROM vault_packedword WHERE tenant_id = %s"
FORGET_POSTINGS = """
DELETE FROM vault_packedpostings AS packed WHERE packed.tenant_id = %s AND NOT EXISTS (
  SELECT FROM vault_packedword AS word WHERE word.tenant_id = packed.tenant_id AND word.term = packed.term)
"""
PLACE = """
INSERT INTO vault_packedword (tenant_id, term, until)
SELECT %s::uuid, term, %s::uuid FROM unnest(%s::bigint[]) AS term ORDER BY term
ON CONFLICT (tenant_id, term) DO NOTHING
"""
NOTE = """
INSERT INTO vault_packing (tenant_id, cubes, words)
SELECT %s::uuid, (SELECT coalesce(sum(cubes), 0) FROM vault_namespacesize WHERE tenant_id = %s),
  (SELECT count(*) FROM vault_packedword WHERE tenant_id = %s)
ON CONFLICT (tenant_id) DO UPDATE
SET cubes = CASE WHEN %s THEN excluded.cubes ELSE vault_packing.cubes END, words = excluded.words,
  packed_at = clock_timestamp()
"""

# A transaction holds this lock from its first change of a posting to its end.
WRITERS = """
SELECT virtualtransaction FROM pg_locks
WHERE database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND relation = 'vault_posting'::regclass AND mode = 'RowExclusiveLock' AND pid IS DISTINCT FROM pg_backend_pid()
"""
PACK = f"""
INSERT INTO vault_packedpostings (tenant_id, term, namespace_id, postings, facets)
SELECT word.tenant_id, word.term, packed.namespace_id, packed.postings, packed.facets
FROM vault_packedword AS word CROSS JOIN LATERAL (
  SELECT posting.namespace_id, string_agg({ENTRY}, ''::bytea ORDER BY posting.cube_id) AS postings,
    string_agg({FACETS}, ''::bytea ORDER BY posting.cube_id) AS facets
  FROM vault_posting AS posting
  WHERE posting.tenant_id = word.tenant_id AND posting.term = word.term AND posting.cube_id <= word.until
    AND posting.frequency > 0
  GROUP BY posting.namespace_id
) AS packed
WHERE word.tenant_id = %s AND NOT word.is_packed
"""
MARK = "UPDATE vault_packedword SET is_packed = true WHERE tenant_id = %s AND NOT is_packed"


def compaction_request(actor: Actor) -> None:
    """Leave the first step to a job, for the time when it is due, unless one waits already. Writes: OutboxEvent?."""
    has_changed, seconds = _due(actor)
    if has_changed or seconds is not None:
        wanted = _settled(0.0 if has_changed else seconds)
        if not is_asked(actor=actor, topic=Topic.WORDS_DUE, seconds=wanted):
            emit_later(actor=actor, topic=Topic.WORDS_DUE, payload={}, seconds=wanted)


def words_place(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """The first step, where it is still due: place the words that are missing, or all where the tenant has changed."""

    def write() -> None:
        has_changed, seconds = _due(actor)
        if not has_changed and seconds is None:
            return
        if not has_changed and seconds is not None and seconds > 0:  # packed again since this was asked for
            emit_later(actor=actor, topic=Topic.WORDS_DUE, payload={}, seconds=_settled(seconds))
            return
        with connection.cursor() as cursor:
            _lock_compaction(cursor, actor)
            _place(cursor, actor.tenant_id, anew=has_changed)
        emit(actor=actor, topic=Topic.WORDS_PLACED, payload={})

    return write


def words_pack(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """The second step: pack what is placed. Raises Conflict, so that it is tried again, while others write for long."""

    def write() -> None:
        with connection.cursor() as cursor:
            _lock_compaction(cursor, actor)
            _await_writers(cursor)
            cursor.execute(PACK, [actor.tenant_id])
            cursor.execute(DROPPING, [str(actor.tenant_id)])
            cursor.execute(MARK, [actor.tenant_id])
            cursor.execute(FORGET_POSTINGS, [actor.tenant_id])  # of words that were dropped meanwhile
        compaction_request(actor)

    return write


def _due(actor: Actor) -> tuple[bool, float | None]:
    """Return whether the tenant has changed, and after how many seconds missing compaction is due; None if nothing is
    missing.
    """
    tenant = actor.tenant_id
    with connection.cursor() as cursor:
        cursor.execute(DUE, [PACKED_FROM, GROWTH, tenant, REMADE_AFTER, tenant, tenant])
        has_changed, seconds = cursor.fetchone()
    return has_changed, seconds


def _settled(seconds: float | None) -> float:
    """Not before what was written last has settled."""
    return max(seconds or 0.0, SETTLED_SECONDS)


def _lock_compaction(cursor: CursorWrapper, actor: Actor) -> None:
    """Until the end of the transaction, which may take long. Raises Conflict."""
    cursor.execute(ALONE, [str(actor.tenant_id)])
    if not cursor.fetchone()[0]:
        raise Conflict("Another job is at the words of this tenant.")
    cursor.execute(PATIENTLY)


def _place(cursor: CursorWrapper, tenant: UUID, *, anew: bool) -> None:
    """Words are counted before anybody has to wait."""
    cursor.execute(COUNT, [tenant, PACKED_FROM])
    terms = [term for (term,) in cursor.fetchall()]
    cursor.execute(UNTIL, [tenant, uuid7_floor(database_now() - timedelta(seconds=SETTLED_SECONDS))])
    until = cursor.fetchone()
    cursor.execute(DROPPING, [str(tenant)])
    if anew:
        cursor.execute(FORGET, [tenant])
        cursor.execute(FORGET_POSTINGS, [tenant])
    if until is not None:
        cursor.execute(PLACE, [tenant, until[0], terms])
    cursor.execute(NOTE, [tenant, tenant, tenant, anew])


def _await_writers(cursor: CursorWrapper) -> None:
    """Those who are writing postings now have ended. Raises Conflict after MOST_WAITED."""
    before = time.monotonic()
    writers = _writers(cursor)
    while writers:
        if time.monotonic() - before >= MOST_WAITED:
            raise Conflict("Memories have been written for long; what they are found by is packed afterwards.")
        time.sleep(POLL_SECONDS)
        writers &= _writers(cursor)


def _writers(cursor: CursorWrapper) -> set[str]:
    cursor.execute(WRITERS)
    return {transaction for (transaction,) in cursor.fetchall()}
