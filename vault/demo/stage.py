"""Performs the steps of the demo as its people, through the services that people use."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Model
from django.db.models.functions import Now

from governance.access.grants.services import GrantDraft, grant_create
from governance.access.role_templates.services import TemplateDraft, template_create
from governance.actor import Actor, CallContext
from governance.apikeys.services import apikey_revoke
from governance.database import as_person, database_now
from governance.jobs.schedules import ScheduleDraft, schedule_create
from governance.jobs.services import job_create
from governance.jobs.steps import jobs_fail
from governance.members.services import member_remove
from governance.models import ApiKey, Member, OutboxEvent, Persona
from governance.outbox.routes import route_of
from governance.personas.services import PersonaDraft, persona_create
from governance.policies.rules import Limits, Quota, QuotaTargetChoice
from governance.policies.services import PolicyDraft, policy_create, quota_set
from governance.tenants.bonds import KeyBonds
from governance.tenants.principals import reload_actor
from governance.tenants.services import apikey_create
from governance.vocabulary import (
    Action,
    Channel,
    Effect,
    GranteeKind,
    PersonaKind,
    PolicyKind,
    PrincipalKind,
    QuotaTargetKind,
    RoleName,
    Scope,
)
from vault.chat.services import ConversationDraft, conversation_create, turn_run
from vault.content.drafts import UNSET, CubeChanges, CubeDraft, SourceRef
from vault.cubes.lookup import locate
from vault.cubes.moves_and_rollbacks import cube_rollback
from vault.cubes.services import cube_delete, cube_update, cubes_add
from vault.demo.story import Entry, parse_story_time
from vault.holds.services import HoldDraft, cube_freeze, hold_create, hold_release
from vault.jobs.memory_additions import drafts_screen, memories_add_later
from vault.layers.services import memories_add
from vault.lifecycle.services import cube_transition
from vault.listing.views import ViewDraft, view_create
from vault.models import Conversation, Cube, Namespace, Review, Turn
from vault.reader.services import Message, messages_read
from vault.retrieval.queries import SearchQuery
from vault.retrieval.selectors import memories_search
from vault.vocabulary import EXTRACTIVE, Layer, MessageRole, SemanticType, Sensitivity, SourceKind, State

REQUEST_ID = "demo"
MESSAGE_GAP = timedelta(minutes=2)
GIVEN_UP = "Unavailable: The export could not be written."


@dataclass
class Stage:
    """The demo tenant while it is filled. keys, personas, memories: name in the story → id."""

    tenant_id: UUID
    today: datetime
    members: dict[str, Member] = field(default_factory=dict)
    keys: dict[str, UUID] = field(default_factory=dict)
    personas: dict[str, UUID] = field(default_factory=dict)
    memories: dict[str, UUID] = field(default_factory=dict)

    def person(self, name: str) -> Actor:
        """Return the member as an actor in a browser, with the member's present rights."""
        return self._make_actor(PrincipalKind.MEMBER, self.members[name].id, Channel.WEB)

    def later(self, step: Entry) -> datetime | None:
        """Return the expiry of a step, which is given in days from today; None without one."""
        return self.today + timedelta(days=step["expires"], hours=9) if "expires" in step else None

    def memory(self, step: Entry) -> None:
        actor = self.person(step["by"])
        draft = CubeDraft(
            content=step["text"],
            title=step.get("title", ""),
            namespace=step.get("ns"),
            persona=step.get("persona"),
            subject=step.get("subject"),
            speaker=step.get("speaker", ""),
            tags=tuple(step["tags"]),
            sensitivity=Sensitivity(step.get("sensitivity", "internal")),
            importance=step.get("importance", 0.5),
            semantic_type=SemanticType(step.get("kind", "fact")),
            layer=Layer(step.get("layer", "long_term")),
            expires_at=self.later(step),
        )
        (added,) = cubes_add(actor=actor, drafts=[draft])
        if "key" in step:
            self.memories[step["key"]] = added.cube.id

    def session(self, step: Entry) -> None:
        actor = self._make_actor(PrincipalKind.API_KEY, self.keys[step["key"]], Channel.API)
        began = database_now()
        messages = [
            Message(MessageRole(role), content, name, began + index * MESSAGE_GAP, f"{step['session']}-{index}")
            for index, (role, name, content) in enumerate(step["messages"])
        ]
        common = CubeDraft("", namespace=step["namespace"], session_id=step["session"], subject=step.get("subject"))
        memories_add(actor=actor, drafts=messages_read(messages, infer=True, common=common))

    def edit(self, step: Entry) -> None:
        actor, cube_id = self.person(step["by"]), self.memories[step["of"]]
        until = step.get("valid_until")
        changes = CubeChanges(
            content=step.get("content", UNSET),
            title=step.get("title", UNSET),
            tags=tuple(step["tags"]) if "tags" in step else UNSET,
            valid_to=parse_story_time(until, self.today) if until else UNSET,
        )
        version = locate(actor, cube_id).version
        cube_update(
            actor=actor,
            cube_id=cube_id,
            expected_versions={version},
            changes=changes,
            reason=step["reason"],
        )
        Cube.objects.filter(id=cube_id).update(updated_at=database_now())

    def rollback(self, step: Entry) -> None:
        cube_id = self.memories[step["of"]]
        cube_rollback(
            actor=self.person(step["by"]),
            cube_id=cube_id,
            number=int(step["version"]),
            reason=str(step["reason"]),
        )
        Cube.objects.filter(id=cube_id).update(updated_at=database_now())

    def transition(self, step: Entry) -> None:
        cube_transition(
            actor=self.person(step["by"]),
            cube_id=self.memories[step["of"]],
            to=State(step["to"]),
            reason=step["reason"],
        )

    def derive(self, step: Entry) -> None:
        actor = self.person(step["by"])
        known = [locate(actor, self.memories[name]) for name in step["from"]]
        draft = CubeDraft(
            content=step["content"],
            title=step["title"],
            namespace=step["namespace"],
            semantic_type=SemanticType.SUMMARY,
            sources=tuple(SourceRef(cube.id, cube.version, SourceKind.TEXT) for cube in known),
        )
        cubes_add(actor=actor, drafts=[draft])

    def freeze(self, step: Entry) -> None:
        cube_freeze(actor=self.person(step["by"]), cube_id=self.memories[step["of"]], reason=str(step["reason"]))

    def deletion(self, step: Entry) -> None:
        cube_id = self.memories[step["of"]]
        cube_delete(actor=self.person(step["by"]), cube_id=cube_id)
        Cube.objects.filter(id=cube_id).update(deleted_at=database_now())

    def hold(self, step: Entry) -> None:
        draft = HoldDraft(
            reason=step["reason"],
            memory_id=self.memories[step["of"]] if "of" in step else None,
            filters={"namespace": step["namespace"]} if "namespace" in step else None,
            subject=step.get("subject"),
        )
        made = hold_create(actor=self.person(step["by"]), draft=draft)
        if "approved_by" in step:
            with as_person(self.members[step["approved_by"]].user_id):
                hold_release(actor=self.person(step["approved_by"]), hold_id=made.id)

    def grant(self, step: Entry) -> None:
        kind, holder = step["to"]
        known = {"member": lambda: str(self.members[holder].id), "persona": lambda: str(self.personas[holder])}
        of_memory = "of" in step
        draft = GrantDraft(
            holder_kind=GranteeKind(kind),
            holder=known[kind]() if kind in known else holder,
            object_type="memory" if of_memory else "namespace",
            object_id=self.memories[step["of"]] if of_memory else self._namespace_id(step["namespace"]),
            action=Action(step["action"]),
            effect=Effect(step.get("effect", "allow")),
            expires_at=self.later(step),
        )
        grant_create(actor=self.person(step["by"]), draft=draft)

    def conversation(self, step: Entry) -> None:
        actor = self.person(step["by"])
        made = conversation_create(actor=actor, draft=ConversationDraft(model=EXTRACTIVE))
        for question in step["turns"]:
            turn_run(actor=actor, conversation_id=made.id, content=question)
        Conversation.objects.filter(id=made.id).update(updated_at=database_now())

    def persona(self, step: Entry) -> None:
        draft = PersonaDraft(step["name"], PersonaKind(step["kind"]), attributes=step["attributes"])
        self.personas[step["name"]] = persona_create(actor=self.person(step["by"]), draft=draft).id

    def policy(self, step: Entry) -> None:
        draft = PolicyDraft(PolicyKind(step["kind"]), step["name"], step["document"], reason=step["reason"])
        policy_create(actor=self.person(step["by"]), draft=draft)

    def key(self, step: Entry) -> None:
        actor = self.person(step["by"])
        persona = step.get("persona")
        bonds = KeyBonds(str(self.personas[persona]) if persona else None, tuple(step.get("namespaces", ())))
        made = apikey_create(
            actor=actor,
            member=self.members[step["by"]],
            scopes=[Scope(scope) for scope in step["scopes"]],
            name=step["name"],
            expires_at=self.later(step),
            bonds=bonds,
        )
        self.keys[step["key"]] = made.id
        if step.get("revoked"):
            apikey_revoke(actor=actor, key_id=made.id)

    def search(self, step: Entry) -> None:
        for text in step["queries"]:
            memories_search(actor=self.person(step["by"]), search=SearchQuery(query=text, top_k=5))

    def view(self, step: Entry) -> None:
        view_create(actor=self.person(step["by"]), draft=ViewDraft(step["name"], step["query"]))

    def preset(self, step: Entry) -> None:
        draft = TemplateDraft(
            name=step["name"],
            role=RoleName(step["role"]) if "role" in step else None,
            namespaces=tuple(step["namespaces"]),
            purpose=step.get("purpose", ""),
            scopes=tuple(Scope(scope) for scope in step.get("scopes", ())),
        )
        template_create(actor=self.person(step["by"]), draft=draft)

    def import_job(self, step: Entry) -> None:
        drafts = [CubeDraft(content=text, namespace=step["namespace"]) for text in step["contents"]]
        actor = self.person(step["by"])
        memories_add_later(actor=actor, screened=drafts_screen(actor=actor, drafts=drafts))

    def schedule(self, step: Entry) -> None:
        draft = ScheduleDraft(step["kind"], step["cron"], step["timezone"])
        schedule_create(actor=self.person(step["by"]), draft=draft)

    def dead_letter(self, step: Entry) -> None:
        """Create a job that failed its last attempt, as the worker leaves it, so that an admin can run it again."""
        actor = self.person(step["by"])
        job = job_create(actor=actor, kind=step["kind"], settings=step["settings"], total=100)
        attempts = route_of(step["kind"]).max_attempts
        OutboxEvent.objects.filter(id=job.id).update(parked_at=Now(), attempts=attempts, last_error=GIVEN_UP)
        jobs_fail(actor, [job.id], GIVEN_UP)

    def quota(self, step: Entry) -> None:
        member = self.members.get(step["holder"])
        holder = (
            QuotaTargetChoice(QuotaTargetKind.MEMBER, member.id)
            if member
            else QuotaTargetChoice(QuotaTargetKind.TENANT)
        )
        quota_set(actor=self.person(step["by"]), quota=Quota(holder, Limits(**step["limits"])))

    def departure(self, step: Entry) -> None:
        member_remove(actor=self.person(step["by"]), member_id=self.members[step["who"]].id)

    def date_rows(self, models: Iterable[type[Model]], now: datetime, moment: datetime) -> None:
        """Set the creation time of the rows of this transaction, which began at `now`, to the time of their step."""
        for model in models:
            rows: Any = model._default_manager
            rows.filter(tenant_id=self.tenant_id, created_at__gte=now).update(created_at=moment)

    def _make_actor(self, kind: PrincipalKind, principal_id: UUID, channel: Channel) -> Actor:
        return reload_actor(
            tenant_id=self.tenant_id,
            kind=kind,
            principal_id=principal_id,
            request_id=REQUEST_ID,
            context=CallContext(channel=channel),
        )

    def _namespace_id(self, path: str) -> UUID:
        return Namespace.objects.get(tenant_id=self.tenant_id, path=path).id


STEPS = {
    "policies": (Stage.policy, ()),
    "personas": (Stage.persona, (Persona,)),
    "keys": (Stage.key, (ApiKey,)),
    "memories": (Stage.memory, (Namespace, Review)),
    "sessions": (Stage.session, (Namespace, Review)),
    "edits": (Stage.edit, (Review,)),
    "rollbacks": (Stage.rollback, ()),
    "transitions": (Stage.transition, ()),
    "derived": (Stage.derive, ()),
    "freezes": (Stage.freeze, ()),
    "deletions": (Stage.deletion, ()),
    "holds": (Stage.hold, ()),
    "grants": (Stage.grant, ()),
    "conversations": (Stage.conversation, (Namespace, Conversation, Turn)),
}
"""Steps with a time of their own, and the tables whose new rows get that time."""
LAST_STEPS = {
    "searches": Stage.search,
    "views": Stage.view,
    "presets": Stage.preset,
    "imports": Stage.import_job,
    "schedules": Stage.schedule,
    "dead_letters": Stage.dead_letter,
    "departures": Stage.departure,
    "quotas": Stage.quota,
}
"""Steps of the present moment, in this order."""
