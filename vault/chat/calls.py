"""Natural-language requests to the memory: interpreted, and executed if the caller wants it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import UUID

from django.core import signing

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.pages import Last
from governance.personas.selectors import persona_get
from governance.vocabulary import Permission
from vault.chat.commands import hits_for_call
from vault.chat.selectors import conversation_locate, turns_list
from vault.chat.services import FOLLOWED
from vault.content.drafts import CubeDraft
from vault.cubes.lookup import cube_target
from vault.cubes.selectors import CubeView, cubes_view
from vault.cubes.services import cube_delete, cubes_add
from vault.cubes.writer.builder import texts_index
from vault.layers.persona_scope import scope_to_conversation, scope_to_persona
from vault.models import Cube
from vault.reader.model_reader import MessageReading, text_read
from vault.reader.rules import Intent, MemoryCall, Statement, memory_call, read_statements
from vault.reader.services import MODEL, PATTERNS, statement_draft
from vault.reconciliation.corrections import find_ended, is_current, is_own_statement
from vault.reconciliation.relations import Relation
from vault.reconciliation.services import Reconciled, relations_store, statements_relate
from vault.retrieval.queries import SearchQuery
from vault.retrieval.selectors import memories_search
from vault.vocabulary import MessageRole

MOST_RETURNED = 10  # memories of a search
CONFIRM_SECONDS = 600  # for which a list of what would be deleted can be confirmed
SALT = "memory-calls"


@dataclass(frozen=True)
class CallPlace:
    """The persona and session of a request, both optional. persona: id or name; session_id: the caller's own name for
    a session, or the id of a conversation of the caller's.
    """

    persona: str = ""
    session_id: str = ""
    writes_as: UUID | None = None  # the persona of the conversation

    @property
    def conversation_id(self) -> UUID | None:
        """Return the id of the conversation that is the session; None if it is none."""
        try:
            return UUID(self.session_id) if self.session_id else None
        except ValueError:
            return None

    @property
    def personas(self) -> tuple[str, ...]:
        return (self.persona,) if self.persona else ()

    @property
    def new_persona(self) -> str | None:
        """Return the persona of new memories: the one that the request names, else that of the conversation."""
        return self.persona or (str(self.writes_as) if self.writes_as else None)


@dataclass(frozen=True)
class Confirmation:
    """A deletion to be confirmed. token: deletes `ids` if sent with the same text within CONFIRM_SECONDS."""

    token: str
    ids: tuple[UUID, ...]


@dataclass(frozen=True)
class CallOutcome:
    """The result of a request. memories: stored or found; deleted: ids; confirmation: a deletion to be confirmed."""

    memories: tuple[CubeView, ...] = ()
    deleted: tuple[UUID, ...] = ()
    confirmation: Confirmation | None = None


Within = Callable[[CallOutcome], None]


def call_read(*, actor: Actor, text: str, past: Sequence[str] = ()) -> MessageReading:
    """Interpret a text as a request to the memory. past: the questions before it, oldest first.

    Raises Forbidden and the errors of `text_read`. Writes the rows of `text_read`.
    """
    authorize(actor, Permission.CONVERSATION_USE)
    return text_read(actor, text, memory_call(text, said_at=datetime.now(UTC), past=past))


def last_questions(*, actor: Actor, conversation_id: UUID) -> list[str]:
    """Return the last FOLLOWED questions of one of the actor's own conversations, oldest first.

    Raises NotFound; Forbidden. Writes: AuditEntry naming the memories of its turns, AuditEntry?.
    """
    turns = turns_list(actor=actor, conversation_id=conversation_id, pages=Last(FOLLOWED))
    return [turn.question for turn in turns if turn.question]


def call_execute(
    *, actor: Actor, text: str, reading: MessageReading, place: CallPlace, confirm: str = "", within: Within
) -> CallOutcome:
    """Execute a request: store the stated facts, search, list the memories of an operation, or delete.

    Without `confirm` a deletion only lists its memories; operations besides deletions are never carried out. `within`
    runs in the transaction that writes the result.
    Raises Forbidden; NotFound; Held; Invalid, also for a foreign or expired token; the errors of `cubes_add` and
    `memories_search`. Writes the rows of `cubes_add`, `cube_delete` or `memories_search`.
    """
    authorize(actor, Permission.CONVERSATION_USE)
    call = reading.call
    actor, place = _scope_call(actor, place)
    if call.intent in {Intent.ADD, Intent.UPDATE} and not call.is_operation:
        return _add_statements(actor, text, reading, place, within)
    if call.intent is Intent.DELETE:
        return _delete_listed(actor, confirm, within) if confirm else _list_deletable(actor, call, place, within)
    if call.intent is Intent.CHAT:
        return _finish_call(actor, CallOutcome(), within)
    return _search_memories(actor, call, place, within)


def _scope_call(actor: Actor, place: CallPlace) -> tuple[Actor, CallPlace]:
    """Return the actor in the scope of the request's persona or conversation, and the place with the id of the persona
    that new memories get.

    Raises NotFound; Forbidden; Invalid if the conversation belongs to another persona.
    """
    if not place.persona and not place.session_id:
        return actor, place
    with acting(actor):
        named = persona_get(actor=actor, reference=place.persona).id if place.persona else None
        if place.conversation_id is None:
            return (scope_to_persona(actor, named, session=place.session_id) if named else actor), place
        conversation = conversation_locate(actor, place.conversation_id)
        if named is None or named == conversation.persona_id:
            return scope_to_conversation(actor, conversation), replace(place, writes_as=conversation.persona_id)
        if conversation.persona_id is not None:
            raise Invalid(errors=[FieldError("persona", "the conversation belongs to another persona")])
        return scope_to_persona(actor, named, session=str(conversation.id)), place


def _add_statements(actor: Actor, text: str, reading: MessageReading, place: CallPlace, within: Within) -> CallOutcome:
    """Store each statement as its own memory; an update ends the validity of the statement that it corrects."""
    base = CubeDraft(
        content=text,
        persona=place.new_persona,
        session_id=place.session_id,
        speaker=MessageRole.USER,
        is_message=True,
    )
    now = datetime.now(UTC)
    found, reader = reading.statements, MODEL
    if found is None:
        found, reader = read_statements(text, speaker=MessageRole.USER, said_at=now), PATTERNS
    is_update = reading.call.intent is Intent.UPDATE
    drafts = [replace(statement_draft(base, statement, parent=0, reader=reader), parent=None) for statement in found]
    if is_update:
        reconciled = Reconciled(drafts, tuple(_find_corrected(actor, found, place, now)))
    else:
        reconciled = statements_relate(actor=actor, drafts=drafts)
    texts = texts_index(actor.tenant_id, reconciled.drafts)
    with acting(actor):
        added = cubes_add(actor=actor, drafts=reconciled.drafts, texts=texts)
        relations_store(actor=actor, added=added, relations=reconciled.relations)
        views = cubes_view(actor=actor, cube_ids=[memory.cube.id for memory in added])
        return _finish_call(actor, CallOutcome(memories=tuple(views)), within)


def _find_corrected(
    actor: Actor, statements: Sequence[Statement], place: CallPlace, now: datetime
) -> Iterator[Relation]:
    """Yield the relations of statements that the caller announces as corrections."""
    for number, statement in enumerate(statements):
        search = SearchQuery(
            query=statement.text, top_k=MOST_RETURNED, personas=place.personas, conversation_id=place.conversation_id
        )
        hits = memories_search(actor=actor, search=search, permission=Permission.CONVERSATION_USE)
        own = [hit for hit in hits if is_own_statement(actor, hit) and is_current(hit, now)]
        earlier = [(hit.view.cube.id, hit.view.words.content) for hit in own]
        older = find_ended(statement.text, said_at=now, earlier=earlier, is_correction=True)
        if older:
            yield Relation(number, older.id, older.kind, older.rest)


def _search_memories(actor: Actor, call: MemoryCall, place: CallPlace, within: Within) -> CallOutcome:
    authorize(actor, Permission.MEMORY_READ)
    if call.is_operation:
        hits = hits_for_call(actor, call, place.conversation_id, frozenset(), place.personas)
    else:
        search = SearchQuery(
            query=call.rewritten,
            top_k=MOST_RETURNED,
            personas=place.personas,
            conversation_id=place.conversation_id,
        )
        hits = memories_search(actor=actor, search=search, permission=Permission.CONVERSATION_USE)
    return _finish_call(actor, CallOutcome(memories=tuple(hit.view for hit in hits)), within)


def _list_deletable(actor: Actor, call: MemoryCall, place: CallPlace, within: Within) -> CallOutcome:
    """List the memories that the request names and the actor may delete."""
    authorize(actor, Permission.MEMORY_READ)
    meant = hits_for_call(actor, call, place.conversation_id, frozenset(), place.personas)
    with acting(actor):
        hits = [hit for hit in meant if is_allowed(actor, Permission.MEMORY_DELETE, cube_target(hit.view.cube))]
    ids = tuple(hit.view.cube.id for hit in hits)
    body = {"principal": str(actor.principal_id), "ids": [str(cube_id) for cube_id in ids]}
    confirmation = Confirmation(signing.dumps(body, salt=SALT), ids)
    return _finish_call(actor, CallOutcome(memories=tuple(hit.view for hit in hits), confirmation=confirmation), within)


def _delete_listed(actor: Actor, confirm: str, within: Within) -> CallOutcome:
    """Delete the memories that a confirmation token lists and that still exist, all or none."""
    try:
        body = signing.loads(confirm, salt=SALT, max_age=CONFIRM_SECONDS)
    except signing.BadSignature as error:
        raise _confirmation_error() from error
    if body["principal"] != str(actor.principal_id):
        raise _confirmation_error()
    with acting(actor):
        named = Cube.objects.visible_to(actor).filter(id__in=[UUID(named_id) for named_id in body["ids"]])
        ids = tuple(named.order_by("id").values_list("id", flat=True))
        for cube_id in ids:
            cube_delete(actor=actor, cube_id=cube_id)
        return _finish_call(actor, CallOutcome(deleted=ids), within)


def _confirmation_error() -> Invalid:
    return Invalid(errors=[FieldError("confirm", "unknown or too old: leave it out for a new list and token")])


def _finish_call(actor: Actor, outcome: CallOutcome, within: Within) -> CallOutcome:
    with acting(actor):
        within(outcome)
    return outcome
