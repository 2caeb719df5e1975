"""A tenant with rows in every table, all made by the real services."""

import time
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

from governance.access.grants.services import GrantDraft, grant_create
from governance.access.role_templates.services import TemplateDraft, template_create
from governance.accounts.identities import Claims, ProviderDraft, oidc_sign_in, provider_of, provider_save
from governance.actor import Actor, system_actor
from governance.apikeys.request_log import Note, key_requests_store
from governance.audit.reading.exports import export_create
from governance.audit.reading.queries import AuditQuery
from governance.audit.reading.selectors import entries_list
from governance.audit.reading.sinks import SinkDraft, sink_create
from governance.database import acting, database_now
from governance.ids import uuid7
from governance.jobs.schedules import ScheduleDraft, schedule_create
from governance.members.services import invitation_create
from governance.models import Persona
from governance.outbox.dispatcher import dispatch_once
from governance.outbox.routes import Task
from governance.outbox.runner import task_run
from governance.pages import First
from governance.personas.services import PersonaDraft, persona_create
from governance.policies.rules import Limits, Quota, QuotaTargetChoice
from governance.policies.services import PolicyDraft, policy_create, quota_set
from governance.tenants.selectors import me_get
from governance.tenants.services import sign_in_link_create
from governance.vocabulary import (
    Action,
    ExportFormat,
    GranteeKind,
    PersonaKind,
    PolicyKind,
    QuotaTargetKind,
    RoleName,
    SinkKind,
    Topic,
)
from governance.webhooks.services import WebhookDraft, webhook_create
from tests.factories import REQUEST_ID, Person, client_for
from tests.vault.forms.stored import form_add, proposal_add
from vault.chat.services import ConversationDraft, conversation_create, turn_run
from vault.content.drafts import CubeChanges, CubeDraft
from vault.cubes.selectors import cube_get
from vault.cubes.services import cube_delete, cube_restore, cube_update, cubes_add
from vault.endpoints.services import EndpointDraft, endpoint_create
from vault.exchange.sync.peers import PeerDraft, peer_create
from vault.exchange.uploads import upload_create
from vault.holds.services import cube_freeze, cube_unfreeze
from vault.jobs.memory_additions import drafts_screen, memories_add_later
from vault.layers.constants import constants_set
from vault.layers.services import memories_add
from vault.lifecycle.services import cube_transition
from vault.listing.actions import ActionDraft, action_create
from vault.listing.bulk import BulkArguments
from vault.listing.views import ViewDraft, view_create
from vault.models import (
    ArchivedPosting,
    Namespace,
    PackMemory,
    PackRating,
    PackTrial,
    PackVersion,
    PredictorCount,
    Summary,
    SyncLink,
)
from vault.namespaces.mounts import MountDraft, mount_create
from vault.overview.counts import counts_write
from vault.pipelines.services import PipelineDraft, pipeline_create
from vault.reader.services import Message, messages_read
from vault.store.proposals import ProposalDraft, proposal_create
from vault.store.publications import PublicationDraft, publication_create
from vault.store.reports import report_write
from vault.store.scan import LeavingRules
from vault.store.services import PackDraft, VersionDraft, pack_create, version_build
from vault.store.subscriptions import SubscriptionDraft, subscription_create
from vault.vocabulary import ImportFormat, MessageRole, ReportReason, State, SubjectRule


@dataclass(frozen=True)
class Filled:
    """The rows that `person` made; every text has `canary`."""

    person: Person
    canary: str
    cube_id: UUID
    conversation_id: UUID
    job_id: UUID
    policy_id: UUID


def fill(person: Person, canary: str) -> Filled:
    """Leave rows of `person`'s tenant in every table; `person` may write and manage."""
    actor = person.actor
    sign_in_link_create(actor=actor, member=person.member)
    ways_in(person, canary)
    draft = CubeDraft(
        content=f"The {canary} sings at noon.",
        title=f"{canary} title",
        namespace=f"/{canary}",
        persona=person.member.display_name,
        subject=f"{canary}-subject-1",  # with a digit it has no parts, which the texts of the pack would name
        session_id=f"{canary}-session",
        message_id="1",
        speaker=canary,
        tags=(f"{canary}-tag",),
        metadata={"bird": canary},
    )
    later = replace(draft, content=f"The {canary} sleeps.", message_id="2", is_message=True, parent=0)
    cube_id = cubes_add(actor=actor, drafts=[draft, later])[0].cube.id
    changes = CubeChanges(content=f"The {canary} sings at dusk.")
    cube_update(actor=actor, cube_id=cube_id, expected_versions={1}, changes=changes, reason=canary)
    cube_get(actor=actor, cube_id=cube_id)
    cube_freeze(actor=actor, cube_id=cube_id, reason=canary)
    cube_unfreeze(actor=actor, cube_id=cube_id)
    cube_transition(actor=actor, cube_id=cube_id, to=State.ACTIVATED, reason=canary)
    cube_delete(actor=actor, cube_id=cube_id)
    cube_restore(actor=actor, cube_id=cube_id)
    conversation = conversation_create(actor=actor, draft=ConversationDraft(title=f"{canary} chat"))
    turn_run(actor=actor, conversation_id=conversation.id, content=f"When does the {canary} sing?")
    job = memories_add_later(
        actor=actor, screened=drafts_screen(actor=actor, drafts=[CubeDraft(content=f"The {canary} flies away.")])
    )
    cubes_add(actor=actor, drafts=[CubeDraft(content=f"Write to {canary}@birds.example about it.")])
    reply = client_for(person.key.text).post("memories/", {"content": f"{canary} once"}, idempotency_key=canary)
    assert reply.status == 201, reply
    request = Note(actor.tenant_id, person.key.id, time.time(), "GET", "api/v1/me/", 200, 3)
    assert key_requests_store(tenant_id=actor.tenant_id, notes=[request]) == 1
    view_create(actor=actor, draft=ViewDraft(name=f"{canary} view", query=f"q={canary}"))
    pipeline_create(actor=actor, draft=PipelineDraft(f"{canary} pipeline", [{"op": "search", "query": canary}]))
    form_add(actor, [cube_id], title=f"{canary} cache")
    proposal_add(actor, [cube_id])
    action_create(
        actor=actor, draft=ActionDraft("tag", ids=(cube_id,), arguments=BulkArguments(tags=(f"{canary}-tag-2",)))
    )
    _layers_fill(person, canary)
    policy_id = _policies_fill(actor)
    mount_create(actor=actor, draft=MountDraft(namespace=f"/{canary}", task_id=f"{canary}-task"))
    _packs_fill(actor, canary, cube_id)
    _peer_add(actor, canary, cube_id)
    upload_create(actor=actor, name=f"{canary}.md", form=ImportFormat.MARKDOWN, content=canary.encode())
    _words_pack(actor, cube_id)
    _grant(person, canary, cube_id)
    _fill_audit_log(person)
    return Filled(person, canary, cube_id, conversation.id, job.id, policy_id)


def _layers_fill(person: Person, canary: str) -> None:
    """A conversation whose pages leave the queue at once, and are distilled."""
    with acting(person.actor):
        persona_id = Persona.objects.get(member_id=person.member.id).id
        PredictorCount.objects.create(
            tenant_id=person.actor.tenant_id, persona_id=persona_id, predictor="recent", preloaded=2, used=1
        )
    constants_set(actor=person.actor, persona_id=persona_id, values={"stm_pages": 1, "theta": -1, "tau": 0.5})
    told = [f"I love running with the {canary}.", "I enjoy cooking.", "Thanks!"]
    messages = [Message(role=MessageRole.USER, content=text) for text in told]
    common = CubeDraft(content="", session_id=f"{canary}-talk", namespace=f"/{canary}")
    memories_add(actor=person.actor, drafts=messages_read(messages, infer=True, common=common))


def _policies_fill(actor: Actor) -> UUID:
    """A policy about nothing that is there, and a quota of which something is used. They hold no content."""
    retention = {"where": {"namespace": "/nothing"}, "max_seconds": 3600}
    policy = policy_create(actor=actor, draft=PolicyDraft(PolicyKind.RETENTION, "about nothing", retention))
    quota_set(actor=actor, quota=Quota(QuotaTargetChoice(QuotaTargetKind.TENANT), Limits(memories=1_000)))
    cubes_add(actor=actor, drafts=[CubeDraft(content="It counts.")])
    return policy.id


def _packs_fill(actor: Actor, canary: str, cube_id: UUID) -> None:
    """A pack with one memory, published to its own tenant alone, which subscribes to it and reads it."""
    pack = pack_create(actor=actor, draft=PackDraft(canary, f"{canary} pack", readme=canary, keywords=(canary,)))
    rules = LeavingRules(subjects=SubjectRule.ANONYMISE)
    version_build(actor=actor, pack_id=pack.id, draft=VersionDraft("1.0.0", ids=(cube_id,), rules=rules))
    drain()
    with acting(actor):
        version = PackVersion.objects.get(pack=pack)
    publication = publication_create(actor=actor, draft=PublicationDraft(version.id))
    subscription_create(actor=actor, draft=SubscriptionDraft(publication.id))
    drain()
    with acting(actor):
        # An organisation does not rate its own pack: this is the row that another one's rating would leave.
        PackRating.objects.create(
            tenant_id=actor.tenant_id, publication_id=publication.id, source_id=uuid7(), stars=5, text=canary
        )
        # Nor does it try its own pack.
        PackTrial.objects.create(tenant_id=actor.tenant_id, publication_id=publication.id, key=uuid7())
        installed = PackMemory.objects.all()[0]
    report_write(actor=actor, publication_id=publication.id, reason=ReportReason.OTHER, text=canary)
    change = ProposalDraft(installed.cube_id, f"{canary}, anew", canary)
    proposal_create(actor=actor, subscription_id=installed.subscription_id, draft=change)
    cube_get(actor=actor, cube_id=installed.cube_id)
    drain()


def _peer_add(actor: Actor, canary: str, cube_id: UUID) -> None:
    """A peer that was never called, and the link that a sync with it would leave."""
    draft = PeerDraft("Peer", "https://peer.example", "mk_peer", f"/{canary}", f"/{canary}")
    peer = peer_create(actor=actor, draft=draft)
    with acting(actor):
        SyncLink.objects.create(
            tenant_id=actor.tenant_id, peer_id=peer.id, cube_id=cube_id, remote_id=uuid7(), version=1, remote_version=1
        )


def _words_pack(actor: Actor, cube_id: UUID) -> None:
    """Make the rows that a tenant with a thousand memories would have."""
    with acting(actor):
        namespace = Namespace.objects.all()[0]
        fields = {"namespace_id": namespace.id, "layer": 3, "type": 1, "happened_at": database_now()}
        ArchivedPosting.objects.create(
            tenant_id=actor.tenant_id, term=1, cube_id=cube_id, frequency=1, length=1, **fields
        )
        Summary.objects.create(tenant_id=actor.tenant_id, namespace=namespace, passages=[], memories=1)


def ways_in(person: Person, canary: str) -> None:
    """An invitation, and a sign-in server by which the person has come in."""
    actor = person.actor
    slug = tenant_slug(person)
    invitation_create(actor=actor, email=f"{canary}@invited.example", role=RoleName.VIEWER)
    domain = person.email.partition("@")[2]
    draft = ProviderDraft(
        issuer="https://sign-in.example", client_id=canary, domains=(domain,), default_role=None, secret=canary
    )
    provider_save(actor=actor, draft=draft)
    provider = provider_of(slug)
    assert provider is not None
    claims = Claims(subject=canary, email=person.email, email_verified=True)
    oidc_sign_in(provider=provider, claims=claims, request_id=REQUEST_ID, address="192.0.2.1")


def tenant_slug(person: Person) -> str:
    return me_get(actor=person.actor).tenant_slug


def _fill_audit_log(person: Person) -> None:
    """An export, a sink, a language model, seals and a checkpoint; and one entry that waits for its seal."""
    actor = person.actor
    endpoint_create(actor=actor, draft=EndpointDraft(model="tiny", address="https://model.example/v1", key="sk-x"))
    sink_create(actor=actor, draft=SinkDraft(name="log", kind=SinkKind.SYSLOG, address="syslog+udp://sink.example"))
    webhook_create(actor=actor, draft=WebhookDraft(url="https://webhook.invalid/", events=["quota.changed"]))
    quota_set(actor=actor, quota=Quota(QuotaTargetChoice(QuotaTargetKind.TENANT), Limits(memories=1_001)))
    export_create(actor=actor, query=AuditQuery(), form=ExportFormat.JSONL)
    schedule_create(actor=actor, draft=ScheduleDraft(kind=Topic.RETENTION_APPLY, cron="0 3 * * *"))
    drain()
    _count(actor)
    entries_list(actor=actor, query=AuditQuery(), pages=First(1000))


def _count(actor: Actor) -> None:
    """The counts of the overview, as its job keeps them."""
    system = system_actor(tenant_id=actor.tenant_id, request_id=REQUEST_ID)
    write = counts_write(system, [])
    with acting(system):
        write()


def _grant(person: Person, canary: str, cube_id: UUID) -> None:
    """A grant of each kind, one under a condition, and a preset."""
    actor = person.actor
    persona = persona_create(actor=actor, draft=PersonaDraft("Helper", PersonaKind.AGENT, attributes={"bird": canary}))
    with acting(actor):
        namespace = Namespace.objects.get(path=f"/{canary}")
    for object_type, object_id in (("memory", cube_id), ("namespace", namespace.id), ("persona", persona.id)):
        draft = GrantDraft(
            holder_kind=GranteeKind.ROLE,
            holder=RoleName.VIEWER,
            object_type=object_type,
            object_id=object_id,
            action=Action.READ,
            conditions={"purpose": [canary]},
        )
        grant_create(actor=actor, draft=replace(draft, expires_at=database_now() + timedelta(days=1)))
        grant_create(actor=actor, draft=draft)
    preset = TemplateDraft(name=f"{canary} preset", purpose=canary, namespaces=(f"/{canary}",))
    template_create(actor=actor, draft=preset)


def drain() -> None:
    """Do all that the outbox asks for, in this process."""
    while dispatch_once(run_here):
        pass


def run_here(task: Task) -> None:
    """Stands for broker and worker: the task's handler, called at once."""
    task_run(task)
