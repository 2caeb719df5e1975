"""The persona scope of a call: which personas' memories a conversation, or another call for a persona, may read."""

import re
from dataclasses import replace
from uuid import UUID

from django.db.models import Q

from governance.actor import Actor, PersonaScope
from governance.database import acting, cached_in_transaction
from governance.models import Persona
from governance.personas.selectors import persona_get, personas_of
from governance.vocabulary import PersonaKind
from vault.layers.services import persona_of_member
from vault.lexicon.normal import fold_name
from vault.models import Conversation, Cube
from vault.namespaces.mounts import MountPlaces, mounted_ids
from vault.retrieval.queries import SearchQuery
from vault.retrieval.scope import namespace_ids
from vault.vocabulary import OWN_SPEAKERS

ALIASES = ("alias", "aliases", "别名")  # attributes of a persona with other names of its member
_SEPARATOR = re.compile(r"[,;\n，；、]")


def scope_to_persona(
    actor: Actor,
    persona_id: UUID | None,
    *,
    agent_id: UUID | None = None,
    session: str = "",
    is_own: bool = False,
    namespaces: tuple[str, ...] = (),
) -> Actor:
    """Return the actor, speaking as a persona and reading only what belongs to it. Use inside `acting`.

    It reads memories of the persona, of the agent, without a persona, and in namespaces that are mounted for them or
    for the session. persona_id None: the actor's default persona, as which it reads but does not speak. A persona that
    the actor may no longer use is not spoken as, and its memories are read as far as other rights allow. is_own: the
    session is a conversation of the actor with this persona and agent. namespaces: paths that the call names, read as
    mounted ones are.

    Queries, once in a transaction: one for the persona, one for mounts, one with a session that is not `is_own`, one
    with namespaces.
    """
    session = session or actor.context.session

    def find() -> Actor:
        spoken = persona_id or persona_of_member(actor)
        persona = personas_of(actor).filter(id=spoken).select_related("member").first() if spoken else None
        speaker = actor.speaking_as(persona_id) if persona else actor
        personas = frozenset(filter(None, (spoken, agent_id)))
        speakers = frozenset(filter(None, (speaker.persona_id, agent_id)))
        mounted = mounted_ids(speaker, MountPlaces(speakers, session, actor.context.task, is_own))
        names = persona_names(persona) if persona else frozenset[str]()
        reachable = frozenset((*mounted, *namespace_ids(actor, namespaces)))
        scope = PersonaScope(personas, reachable, names, session if is_own else "")
        return replace(speaker, persona_scope=scope)

    return cached_in_transaction(("persona scope", actor, persona_id, agent_id, session, is_own, namespaces), find)


def persona_names(persona: Persona) -> frozenset[str]:
    """Return the folded names of a persona: its own, those in its attributes ALIASES, and the display name of the
    member whose side it is."""
    listed = [name for key in ALIASES for name in _SEPARATOR.split(persona.attributes.get(key, ""))]
    of_member = [persona.member.display_name] if persona.member and persona.kind == PersonaKind.USER else []
    return frozenset(filter(None, map(fold_name, (persona.name, *listed, *of_member))))


def scope_to_conversation(actor: Actor, conversation: Conversation) -> Actor:
    """Return the actor in the scope of a conversation's persona and agent. Use inside `acting`."""
    if actor.persona_scope is not None and actor.persona_scope.session == str(conversation.id):
        return actor
    return scope_to_persona(
        actor,
        conversation.persona_id,
        agent_id=conversation.agent_persona_id,
        session=str(conversation.id),
        is_own=True,
    )


def scope_to_search(actor: Actor, search: SearchQuery) -> Actor:
    """Return the actor in the scope of the one persona that a search names, else of its own conversation that the
    search names as its session; else the actor unchanged.

    Raises Invalid for an unknown persona.
    """
    if len(search.personas) == 1:
        with acting(actor):
            persona = persona_get(actor=actor, reference=search.personas[0], field="personas")
            named = search.added_namespaces
            return scope_to_persona(actor, persona.id, session=search.session_id, namespaces=named)
    conversation_id = _read_uuid(search.session_id)
    if search.personas or conversation_id is None:
        return actor
    with acting(actor):
        rows = Conversation.objects.filter(Q(member_id=actor.member_id), id=conversation_id, deleted_at=None)
        conversation = rows.first()
        return scope_to_conversation(actor, conversation) if conversation else actor


def _read_uuid(text: str) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError:
        return None


def is_own_speaker(actor: Actor, speaker: str) -> bool:
    """Return whether a memory's speaker is the reader: no name, the role of users, or a name of the persona in whose
    scope the actor reads."""
    names = actor.persona_scope.names if actor.persona_scope else frozenset[str]()
    return speaker.casefold() in OWN_SPEAKERS or fold_name(speaker) in names


def is_own_memory(actor: Actor, cube: Cube) -> bool:
    """Return whether a memory is of the reader: of their member, or of the person that is the persona of both.

    What another member told a shared namespace or a shared agent is not.
    """
    if cube.owner_id == actor.member_id:
        return True
    return cube.persona_id is not None and cube.persona_id == actor.persona_id and is_person(actor, cube.persona_id)


def is_person(actor: Actor, persona_id: UUID) -> bool:
    """Return whether a persona is a person's, not an agent's, which several members use."""
    with acting(actor):
        return Persona.objects.filter(id=persona_id, kind=PersonaKind.USER).exists()
