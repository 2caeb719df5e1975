"""A tenant with rows in every table, all made by the real services."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from governance.database import acting
from governance.grants.services import GrantDraft, grant_create
from governance.outbox.dispatcher import dispatch_once
from governance.outbox.services import Handler, events_run
from governance.personas.services import PersonaDraft, persona_create
from governance.presets.services import TemplateDraft, template_create
from governance.tenants.services import sign_in_link_create
from governance.vocabulary import Action, HolderKind, PersonaKind, RoleName, Topic
from tests.factories import Person, client_for
from vault.chat.services import ConversationDraft, conversation_create, turn_run
from vault.cubes.drafts import CubeChanges, CubeDraft
from vault.cubes.jobs import cubes_count_reads, cubes_index
from vault.cubes.selectors import cube_get
from vault.cubes.services import cube_update, cubes_add
from vault.jobs.services import jobs_run, memories_add_later
from vault.models import Namespace

HANDLERS: dict[Topic, Handler] = {
    Topic.CUBES_WRITTEN: cubes_index,
    Topic.CUBES_READ: cubes_count_reads,
    Topic.JOB_REQUESTED: jobs_run,
}


@dataclass(frozen=True)
class Filled:
    """What `person` left; `canary` is in every text of theirs."""

    person: Person
    canary: str
    cube_id: UUID
    conversation_id: UUID
    job_id: UUID


def fill(person: Person, canary: str) -> Filled:
    """Leave rows of `person`'s tenant in every table; `person` may write and manage."""
    actor = person.actor
    sign_in_link_create(actor=actor, member=person.member)
    draft = CubeDraft(
        content=f"The {canary} sings at noon.",
        title=f"{canary} title",
        namespace=f"/{canary}",
        persona=person.member.display_name,
        subject=f"{canary}-subject",
        session_id=f"{canary}-session",
        message_id="1",
        speaker=canary,
        tags=(f"{canary}-tag",),
        metadata={"bird": canary},
    )
    later = replace(draft, content=f"The {canary} sleeps.", message_id="2", is_message=True, parent=0)
    cube_id = cubes_add(actor=actor, drafts=[draft, later])[0].cube.id
    changes = CubeChanges(content=f"The {canary} sings at dusk.")
    cube_update(actor=actor, cube_id=cube_id, expected_version=1, changes=lambda: changes, reason=canary)
    cube_get(actor=actor, cube_id=cube_id)
    conversation = conversation_create(actor=actor, draft=ConversationDraft(title=f"{canary} chat"))
    turn_run(actor=actor, conversation_id=conversation.id, content=f"When does the {canary} sing?")
    job = memories_add_later(actor=actor, drafts=[CubeDraft(content=f"The {canary} flies away.")])
    reply = client_for(person.key.text).post("memories/", {"content": f"{canary} once"}, idempotency_key=canary)
    assert reply.status == 201, reply
    _grant(person, canary, cube_id)
    drain()
    return Filled(person, canary, cube_id, conversation.id, job.id)


def _grant(person: Person, canary: str, cube_id: UUID) -> None:
    """A grant of each kind, one under a condition, and a preset."""
    actor = person.actor
    persona = persona_create(actor=actor, draft=PersonaDraft("Helper", PersonaKind.AGENT, attributes={"bird": canary}))
    with acting(actor):
        namespace = Namespace.objects.get(path=f"/{canary}")
    for object_type, object_id in (("memory", cube_id), ("namespace", namespace.id), ("persona", persona.id)):
        draft = GrantDraft(
            holder_kind=HolderKind.ROLE,
            holder=RoleName.VIEWER,
            object_type=object_type,
            object_id=object_id,
            action=Action.READ,
            conditions={"purpose": [canary]},
        )
        grant_create(actor=actor, draft=draft)
    preset = TemplateDraft(name=f"{canary} preset", purpose=canary, namespaces=(f"/{canary}",))
    template_create(actor=actor, draft=preset)


def drain() -> None:
    """Do all that the outbox asks for, in this process."""
    while dispatch_once(run_here):
        pass


def run_here(topic: Topic, tenant_id: UUID, event_ids: Sequence[UUID]) -> None:
    """Stands for broker and worker: the task's service, called at once."""
    events_run(tenant_id=tenant_id, event_ids=event_ids, handler=HANDLERS[topic])
