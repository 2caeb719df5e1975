"""Deduplication: the stored messages and contents that a call repeats, and the last position of each session.

Advisory locks of the transaction serialise writers of the same session and of the same content, so that positions have
no gaps and no message or content is stored twice.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from governance.actor import Actor
from governance.backdate import find_backdated_moment
from governance.keys.services import TokenMaker
from governance.prepared import prepared_cursor, sql_array
from vault.content.drafts import CubeDraft, SourceRef
from vault.index import marks
from vault.models import Cube, CubeSource
from vault.vocabulary import Modality, State

SHOWN = frozenset({State.GENERATED, State.ACTIVATED})

CONTENT_LOCKS = 64  # contents share these, so that a large call takes few
LOCK = """
SELECT transaction_timestamp(), count(pg_advisory_xact_lock(name)) FROM unnest(%s::bigint[]) AS name
"""
# OFFSET 0 keeps each look-up a look-up, whatever the planner knows of the tenant.
SAME_MESSAGES = """
SELECT posting.cube_id, wanted.namespace_id, wanted.term
FROM unnest(%s::uuid[], %s::bigint[]) AS wanted (namespace_id, term) CROSS JOIN LATERAL (
  (SELECT one.cube_id FROM vault_posting AS one
   WHERE one.tenant_id = %s AND one.term = wanted.term AND one.namespace_id = wanted.namespace_id OFFSET 0)
  UNION ALL
  (SELECT one.cube_id FROM vault_archivedposting AS one
   WHERE one.tenant_id = %s AND one.term = wanted.term AND one.namespace_id = wanted.namespace_id OFFSET 0)
) AS posting
"""
# The end of an index, however long a session is.
LAST_POSITIONS = """
SELECT asked.token, (
  SELECT max(one.position) FROM vault_cube AS one WHERE one.tenant_id = %s AND one.session_token = asked.token)
FROM unnest(%s::bigint[]) AS asked (token)
"""
SAME_CONTENTS = """
SELECT id FROM vault_cube
WHERE tenant_id = %s AND namespace_id = ANY(%s::uuid[]) AND content_hash = ANY(%s::bytea[])
"""

Message = tuple[UUID, int]  # namespace, and the mark of session and message id
Content = tuple[UUID, UUID | None, bytes, UUID | None]  # namespace, persona, keyed hash, source
Statement = tuple[UUID, UUID | None, bytes]  # namespace, persona, keyed hash


@dataclass
class DuplicateIndex:
    """The stored messages and contents that a call repeats, including those that the call has added itself."""

    maker: TokenMaker
    now: datetime  # of the transaction, by the database's clock
    by_message: dict[Message, Cube] = field(default_factory=dict)
    by_content: dict[Content, Cube] = field(default_factory=dict)
    by_statement: dict[Statement, Cube] = field(default_factory=dict)
    positions: dict[int, int] = field(default_factory=dict)

    def find(
        self, draft: CubeDraft, namespace_id: UUID, persona_id: UUID | None, sources: Sequence[SourceRef] = ()
    ) -> Cube | None:
        """Return the stored cube that `draft` duplicates, or None.

        A cube with other sources than the draft is no duplicate of it, because it is deleted with its sources.
        """
        message = _message_key(self.maker, draft, namespace_id)
        if message is not None and message in self.by_message:
            return self.by_message[message]
        if not _is_deduplicated(draft):
            return None
        digest = self.maker.hash(draft.content)
        origins = (*(source.id for source in sources), None)
        found = (self.by_content.get((namespace_id, persona_id, digest, origin)) for origin in origins)
        return next((cube for cube in found if cube is not None), None)

    def find_repeated(self, draft: CubeDraft, namespace_id: UUID, persona_id: UUID | None) -> Cube | None:
        """Return the stored statement that `draft` repeats, whoever said it, or None.

        What a statement tells of another day than that on which it was said is another event each time.
        """
        if not draft.may_repeat or draft.is_dialogue_only or draft.modality is not Modality.TEXT:
            return None
        if draft.event_time not in {None, draft.said_at}:
            return None
        return self.by_statement.get((namespace_id, persona_id, self.maker.hash(draft.content)))

    def remember(self, draft: CubeDraft, cube: Cube, sources: Sequence[SourceRef] = ()) -> None:
        """Add a new cube to the index, so that later drafts of the same call are compared with it."""
        message = _message_key(self.maker, draft, cube.namespace_id)
        if message is not None:
            self.by_message[message] = cube
        if draft.may_repeat and not draft.is_dialogue_only and _is_valid_statement(cube):
            self.by_statement.setdefault((cube.namespace_id, cube.persona_id, bytes(cube.content_hash)), cube)
        if _is_deduplicated(draft):
            for source in sources or (None,):
                self.by_content.setdefault(_content_key(cube, source.id if source else None), cube)

    def next_position(self, draft: CubeDraft, namespace_id: UUID) -> tuple[int | None, int | None]:
        """Return session token and position of the next cube in the session of the draft; positions start at 0."""
        token = _session_token(self.maker, draft, namespace_id)
        if token is None:
            return None, None
        self.positions[token] = self.positions.get(token, -1) + 1
        return token, self.positions[token]


def load_duplicate_index(actor: Actor, maker: TokenMaker, drafts: Sequence[tuple[CubeDraft, UUID]]) -> DuplicateIndex:
    """Take the locks of the drafts, then load what they may repeat. drafts: each with the id of its namespace.

    Queries: at most six, for any number of drafts; the first also returns the transaction's time.
    """
    sessions = {token for draft, place in drafts if (token := _session_token(maker, draft, place)) is not None}
    contents = {
        (place, maker.hash(draft.content)) for draft, place in drafts if _is_deduplicated(draft) or draft.may_repeat
    }
    messages = {found for draft, place in drafts if (found := _message_key(maker, draft, place)) is not None}
    now = _take_locks(sessions | {_content_lock(place, digest) for place, digest in contents})
    by_content, by_statement = _load_contents(actor, contents)
    return DuplicateIndex(
        maker=maker,
        now=now,
        by_message=_load_messages(actor, messages),
        by_content=by_content,
        by_statement=by_statement,
        positions=_load_last_positions(actor, sessions),
    )


def _content_key(cube: Cube, origin: UUID | None) -> Content:
    return cube.namespace_id, cube.persona_id, bytes(cube.content_hash), origin


def _is_deduplicated(draft: CubeDraft) -> bool:
    return not draft.is_message and not draft.allow_duplicates


def _session_token(maker: TokenMaker, draft: CubeDraft, namespace_id: UUID) -> int | None:
    return maker.token("order", f"{namespace_id}\x00{draft.session_id}") if draft.session_id else None


def _message_key(maker: TokenMaker, draft: CubeDraft, namespace_id: UUID) -> Message | None:
    if not (draft.is_message and draft.session_id and draft.message_id):
        return None
    return namespace_id, marks.message_mark(maker, draft.session_id, draft.message_id)


def _content_lock(namespace_id: UUID, digest: bytes) -> int:
    return namespace_id.int % 2**56 + digest[0] % CONTENT_LOCKS


def _take_locks(names: Iterable[int]) -> datetime:
    """Take advisory locks in order and return the transaction's time."""
    with prepared_cursor() as cursor:
        cursor.execute(LOCK, [sql_array(sorted(names))])
        now: datetime = cursor.fetchone()[0]
    return find_backdated_moment() or now


def _load_last_positions(actor: Actor, sessions: Collection[int]) -> dict[int, int]:
    if not sessions:
        return {}
    with prepared_cursor() as cursor:
        cursor.execute(LAST_POSITIONS, [actor.tenant_id, sql_array(sessions)])
        return {token: last for token, last in cursor.fetchall() if last is not None}


def _load_messages(actor: Actor, wanted: Collection[Message]) -> dict[Message, Cube]:
    if not wanted:
        return {}
    places, sent_marks = zip(*wanted, strict=True)
    with prepared_cursor() as cursor:
        cursor.execute(SAME_MESSAGES, [sql_array(places), sql_array(sent_marks), actor.tenant_id, actor.tenant_id])
        found = {cube_id: (namespace_id, term) for cube_id, namespace_id, term in cursor.fetchall()}
    if not found:
        return {}
    cubes = Cube.objects.visible_to(actor).filter(id__in=found).select_related("namespace")
    return {found[cube.id]: cube for cube in cubes}


def _find_same_contents(actor: Actor, wanted: Collection[tuple[UUID, bytes]]) -> list[UUID]:
    """Return the ids of all cubes of the tenant with one of these contents, also those that the actor may not read."""
    places = list({place for place, _ in wanted})
    with prepared_cursor() as cursor:
        cursor.execute(SAME_CONTENTS, [actor.tenant_id, places, [digest for _, digest in wanted]])
        return [row[0] for row in cursor.fetchall()]


def _is_valid_statement(cube: Cube) -> bool:
    """Return whether a memory is shown, holds still, and tells of the time at which it was said."""
    is_ended = cube.valid_to is not None or cube.superseded_by is not None
    return cube.state in SHOWN and not is_ended and cube.event_time in {None, cube.said_at}


def _load_contents(
    actor: Actor, wanted: Collection[tuple[UUID, bytes]]
) -> tuple[dict[Content, Cube], dict[Statement, Cube]]:
    """Return the readable cubes with these contents, and of each content the statement that stands: the earliest,
    rather one that is not deleted with another memory.
    """
    if not wanted:
        return {}, {}
    same = _find_same_contents(actor, wanted)
    if not same:  # the usual case: no query for visibility
        return {}, {}
    visible = Cube.objects.visible_to(actor).filter(id__in=same, is_dialogue_only=False)
    cubes = visible.select_related("namespace").order_by("-id")
    derived = [cube.id for cube in cubes if cube.has_sources]
    origins: dict[UUID, list[UUID]] = {}
    for cube_id, source_id in CubeSource.objects.filter(cube_id__in=derived).values_list("cube_id", "source_id"):
        origins.setdefault(cube_id, []).append(source_id)
    in_force = [cube for cube in cubes if cube.superseded_by is None or cube.state == State.MERGED]  # said again: anew
    by_content = {_content_key(cube, origin): cube for cube in in_force for origin in origins.get(cube.id, [None])}
    last_wins = sorted(filter(_is_valid_statement, cubes), key=lambda cube: not cube.has_sources)
    return by_content, {_content_key(cube, None)[:3]: cube for cube in last_wins}
