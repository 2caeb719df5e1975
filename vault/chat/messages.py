"""Messages in the place of the statements that were read from them: an answer quotes a short message whole."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from uuid import UUID

from governance.actor import Actor
from governance.vocabulary import Permission, Verb
from vault.cubes.selectors import CubeView, cubes_read
from vault.reader.rules.answers import LONGEST_WHOLE
from vault.retrieval.selectors import Hit
from vault.vocabulary import STATED


def put_messages(actor: Actor, hits: Sequence[Hit], found: Sequence[Hit], closed: AbstractSet[UUID]) -> list[Hit]:
    """Return the hits, each message once: a statement gives its rank, score and parts to its message, if that is short.
    A statement that is all of its message stays, as it has the time of the event.

    found: memories that are open already; closed: those that may not be quoted.
    Raises KeyUnavailable; AuditUnavailable. Writes: AuditEntry?, OutboxEvent?.
    """
    known = {hit.view.cube.id: hit.view for hit in found if hit.view.cube.id not in closed}
    wanted = {parent for hit in hits if is_statement(hit) for parent in hit.view.parents} - known.keys() - closed
    known |= {view.cube.id: view for view in _open_messages(actor, wanted)}
    chosen: dict[UUID, Hit] = {}
    for hit in hits:
        message = _find_message(hit, known)
        is_same = message is not None and message.words.content.strip() == hit.view.words.content
        view = hit.view if message is None or is_same else message
        key = hit.view.cube.id if message is None else message.cube.id
        if is_same and key in chosen:
            chosen[key] = replace(chosen[key], view=view)
        chosen.setdefault(key, replace(hit, view=view))
    return list(chosen.values())


def is_statement(hit: Hit) -> bool:
    """Return whether a memory was read from a single message."""
    view = hit.view
    return len(view.parents) == 1 and view.cube.semantic_type in STATED and not view.words.quotes


def _open_messages(actor: Actor, ids: AbstractSet[UUID]) -> list[CubeView]:
    verb, permission = Verb.MEMORY_SEARCHED, Permission.CONVERSATION_USE
    return cubes_read(actor=actor, cube_ids=sorted(ids), verb=verb, permission=permission) if ids else []


def _find_message(hit: Hit, known: Mapping[UUID, CubeView]) -> CubeView | None:
    """Return the short message that holds a statement word for word, or None."""
    message = known.get(hit.view.parents[0]) if is_statement(hit) else None
    if message is None or len(message.words.content) > LONGEST_WHOLE:
        return None
    return message if hit.view.words.content in message.words.content else None
