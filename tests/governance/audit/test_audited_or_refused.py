"""Audited or refused, over every route: where the audit log cannot be written, nothing changes and nothing is told."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from django.urls import URLPattern

from governance.api.access_urls import urlpatterns as routes_of_access
from governance.api.audit_urls import urlpatterns as routes_of_the_trail
from governance.api.jobs_urls import urlpatterns as routes_of_jobs
from governance.api.urls import urlpatterns as routes_of_people
from governance.audit import services
from governance.database import acting
from governance.ids import uuid7
from governance.models import (
    AuditCheckpoint,
    AuditEntry,
    AuditSink,
    Invitation,
    Job,
    Persona,
    PersonaGrant,
    RoleTemplate,
    Schedule,
    Webhook,
    WebhookDelivery,
)
from governance.vocabulary import DeliveryStatus, JobStatus, Outcome, RoleName, Topic
from tests.factories import ApiClient, World, client_for, person_add
from tests.governance.filled_tenants import fill
from tests.governance.mutants import mutant
from tests.governance.tables import read_all_rows
from tests.harness.evidence import Evidence
from tests.vault.api.contract import contract
from tests.vault.outbox import run_jobs
from tests.vault.store.pack_factories import offer_pack as offered_pack
from tests.vault.store.pack_factories import subscribe
from vault.api.urls import urlpatterns as routes_of_the_vault
from vault.models import (
    Contract,
    FormProposal,
    MemoryForm,
    ModelEndpoint,
    Mount,
    Namespace,
    Pack,
    PackMemory,
    PackProposal,
    PackVersion,
    Pipeline,
    Publication,
    Review,
    Subscription,
    SyncPeer,
    Upload,
)
from vault.store.rewordings import texts_open, texts_seal
from vault.vocabulary import ContractState

Superuser = Callable[[], psycopg.Connection]
METHODS = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True)
class Call:
    """One request; `{cube}`, `{deleted}`, `{job}` … of the address are filled in (see `places`)."""

    address: str
    body: Any = None
    if_match: str = ""
    accept: str = ""

    def headers(self) -> dict[str, str]:
        return {name: value for name, value in (("if_match", self.if_match), ("accept", self.accept)) if value}


MESSAGES = {"messages": [{"role": "user", "content": "I like nightingale songs."}]}
SINK = {"name": "new", "kind": "syslog", "address": "syslog+tls://log.example"}
STEPS = [{"op": "search", "query": "nightingale"}, {"op": "add", "content": "new"}]
ENDPOINT = {"model": "tiny", "address": "https://model.example/v1"}
PEER = {
    "name": "of a test",
    "address": "https://peer.example",
    "key": "mk_peer",
    "namespace": "/nightingale",
    "remote_namespace": "/nightingale",
}
SENT: dict[str, Any] = {
    "sent": {
        "id": "0198f3a0-0000-7000-8000-000000000001",
        "version": 1,
        "item": {"id": "0198f3a0-0000-7000-8000-000000000001", "versions": [{"content": "A nightingale of a peer."}]},
        "origin": "",
        "stays": "",
    },
    "target": None,
    "base": None,
}
GRANT: dict[str, Any] = {
    "principal": {"kind": "role", "id": "viewer"},
    "object": {"type": "memory", "id": "{cube}"},
    "action": "write",
}
CALLS: dict[tuple[str, str], list[Call]] = {
    ("forms/", "get"): [Call("forms/")],
    ("forms/", "post"): [Call("forms/", {"memory_ids": ["{memory}"], "title": "Newer"})],
    ("forms/proposals/", "get"): [Call("forms/proposals/")],
    ("forms/proposals/<uuid:form_proposal_id>/", "patch"): [
        Call("forms/proposals/{form_proposal}/", {"state": "declined"})
    ],
    ("forms/<uuid:form_id>/", "get"): [Call("forms/{form}/")],
    ("forms/<uuid:form_id>/", "patch"): [Call("forms/{form}/", {"pinned": True})],
    ("forms/<uuid:form_id>/text/", "get"): [Call("forms/{form}/text/")],
    ("forms/<uuid:form_id>/", "delete"): [Call("forms/{form}/")],
    ("memories/", "get"): [Call("memories/"), Call("memories/?namespace=/nightingale")],
    ("memories/", "post"): [
        Call("memories/", {"content": "new"}),
        Call("memories/", {"content": "new", "namespace": "/brand/new", "subject": "new", "session_id": "new"}),
        Call("memories/", {"content": "nightingale once"}),  # known already: the reply shows what is stored
        Call("memories/", MESSAGES),
        Call("memories/?async=true", MESSAGES),
    ],
    ("memories/bulk/", "post"): [Call("memories/bulk/", {"items": [{"content": "new"}, MESSAGES]})],
    ("memories/search/", "post"): [
        Call("memories/search/", {"query": "nightingale", "mode": mode})
        for mode in ("hybrid", "lexical", "dense", "tag", "memoryos")
    ],
    ("memories/context/", "post"): [Call("memories/context/", {"query": "nightingale"})],
    ("memories/<uuid:memory_id>/", "get"): [Call("memories/{cube}/")],
    ("memories/<uuid:memory_id>/", "patch"): [Call("memories/{cube}/", {"importance": 1.0}, if_match='"3"')],
    ("memories/<uuid:memory_id>/", "delete"): [Call("memories/{cube}/"), Call("memories/{cube}/?purge=true")],
    ("memories/<uuid:memory_id>/restore/", "post"): [Call("memories/{deleted}/restore/")],
    ("memories/<uuid:memory_id>/versions/", "get"): [Call("memories/{cube}/versions/")],
    ("conversations/", "get"): [Call("conversations/")],
    ("conversations/", "post"): [Call("conversations/", {"title": "new"})],
    ("conversations/<uuid:conversation_id>/", "get"): [Call("conversations/{conversation}/")],
    ("conversations/<uuid:conversation_id>/", "patch"): [Call("conversations/{conversation}/", {"title": "new"})],
    ("conversations/<uuid:conversation_id>/", "delete"): [Call("conversations/{conversation}/")],
    ("conversations/<uuid:conversation_id>/summary/", "get"): [Call("conversations/{conversation}/summary/")],
    ("conversations/<uuid:conversation_id>/turns/", "get"): [Call("conversations/{conversation}/turns/")],
    ("conversations/<uuid:conversation_id>/turns/", "post"): [
        Call("conversations/{conversation}/turns/", {"content": "When does the nightingale sing?"}),
        Call(
            "conversations/{conversation}/turns/",
            {"content": "When does the nightingale sing?"},
            accept="text/event-stream",
        ),
    ],
    ("jobs/<uuid:job_id>/retry/", "post"): [Call("jobs/{job}/retry/")],
    ("schedules/", "post"): [Call("schedules/", {"kind": "retention.apply", "cron": "0 3 * * *"})],
    ("schedules/defaults/", "post"): [Call("schedules/defaults/")],
    ("schedules/<uuid:schedule_id>/", "patch"): [Call("schedules/{schedule}/", {"enabled": False})],
    ("schedules/<uuid:schedule_id>/", "delete"): [Call("schedules/{schedule}/")],
    ("schedules/<uuid:schedule_id>/run/", "post"): [Call("schedules/{schedule}/run/")],
    ("webhooks/", "post"): [Call("webhooks/", {"url": "https://hooks.example/", "events": ["memory.*"]})],
    ("webhooks/<uuid:webhook_id>/", "patch"): [Call("webhooks/{webhook}/", {"enabled": False})],
    ("webhooks/<uuid:webhook_id>/test/", "post"): [Call("webhooks/{webhook}/test/")],
    ("webhooks/<uuid:webhook_id>/rotate/", "post"): [Call("webhooks/{webhook}/rotate/")],
    ("deliveries/<uuid:delivery_id>/replay/", "post"): [Call("deliveries/{delivery}/replay/")],
    ("webhooks/<uuid:webhook_id>/", "delete"): [Call("webhooks/{webhook}/")],
    ("jobs/<uuid:job_id>/cancel/", "post"): [Call("jobs/{job}/cancel/")],
    ("jobs/cancel/", "post"): [Call("jobs/cancel/", {"kind": "pack.install"})],
    ("memories/<uuid:memory_id>/redact/", "post"): [Call("memories/{cube}/redact/", {"version": 1})],
    ("reviews/", "get"): [Call("reviews/"), Call("reviews/?kind=pii")],
    ("reviews/quarantine/", "post"): [Call("reviews/quarantine/", {"writer": "{member}"})],
    ("reviews/<uuid:review_id>/accept/", "post"): [Call("reviews/{flagged}/accept/", {})],
    ("reviews/<uuid:review_id>/reject/", "post"): [Call("reviews/{doubted}/reject/")],
    ("reviews/<uuid:review_id>/reopen/", "post"): [Call("reviews/{declined}/reopen/")],
    ("memories/<uuid:memory_id>/freeze/", "post"): [Call("memories/{kept}/freeze/", {"reason": "nightingale"})],
    ("memories/<uuid:memory_id>/context/", "get"): [Call("memories/{cube}/context/")],
    ("graph/", "get"): [Call("graph/"), Call("graph/?around=Nightingale")],
    ("memories/<uuid:memory_id>/relations/", "post"): [
        Call("memories/{whole}/relations/", {"memory_id": "{part}", "kind": "causes"})
    ],
    ("memories/<uuid:memory_id>/relations/<uuid:relation_id>/", "delete"): [
        Call("memories/{whole}/relations/{relation}/")
    ],
    ("memories/<uuid:memory_id>/unfreeze/", "post"): [Call("memories/{kept}/unfreeze/")],
    ("memories/<uuid:memory_id>/transition/", "post"): [Call("memories/{cube}/transition/", {"to": "archived"})],
    ("memories/fuse/", "post"): [
        Call("memories/fuse/?dry_run=true", {"ids": ["{kept}", "{twin}"]}),
        Call("memories/fuse/", {"ids": ["{kept}", "{twin}"]}),
    ],
    ("memories/<uuid:memory_id>/promote/", "post"): [Call("memories/{cube}/promote/", {"layer": "mid_term"})],
    ("memories/<uuid:memory_id>/feedback/", "post"): [
        Call("memories/{cube}/feedback/", {"kind": "useful"}),
        Call("memories/{cube}/feedback/", {"kind": "sensitive"}),
    ],
    ("memories/<uuid:memory_id>/copy/", "post"): [Call("memories/{cube}/copy/", {"namespace": "/brand/new"})],
    ("memories/<uuid:memory_id>/split/", "post"): [Call("memories/{whole}/split/", {"parts": ["one", "two"]})],
    ("memories/<uuid:memory_id>/unfuse/", "post"): [Call("memories/{merged}/unfuse/")],
    ("memories/<uuid:memory_id>/provenance/", "get"): [Call("memories/{cube}/provenance/")],
    ("provenance/verify/", "post"): [Call("provenance/verify/", {"manifest": {}})],
    ("organisation/deletion/", "post"): [Call("organisation/deletion/", {"slug": "acme"})],
    ("holds/", "get"): [Call("holds/")],
    ("holds/", "post"): [
        Call("holds/", {"reason": "nightingale", "filters": {"tags": "nightingale"}}),
        Call("holds/", {"reason": "nightingale", "subject": "new"}),
    ],
    ("holds/<uuid:hold_id>/", "get"): [Call("holds/{hold}/")],
    ("holds/<uuid:hold_id>/release/", "post"): [Call("holds/{hold}/release/")],
    ("policies/", "post"): [Call("policies/", {"kind": "pii", "name": "new", "document": {"action": "refuse"}})],
    ("policies/<uuid:policy_id>/", "patch"): [Call("policies/{policy}/", {"reason": "new"}, if_match='"1"')],
    ("policies/<uuid:policy_id>/", "delete"): [Call("policies/{policy}/")],
    ("quotas/", "put"): [Call("quotas/", {"holder": {"kind": "tenant"}, "limits": {"memories": 99}})],
    ("audit/", "get"): [Call("audit/"), Call("audit/?verb=memory.created")],
    ("audit/<uuid:entry_id>/", "get"): [Call("audit/{entry}/")],
    ("audit/verify/", "get"): [Call("audit/verify/")],
    ("audit/export/", "post"): [Call("audit/export/", {}), Call("audit/export/", {"format": "csv"})],
    ("audit/export/<uuid:export_id>/file/", "get"): [Call("audit/export/{export}/file/")],
    ("audit/checkpoints/<uuid:checkpoint_id>/", "get"): [Call("audit/checkpoints/{checkpoint}/")],
    ("audit/permission-changes/", "get"): [Call("audit/permission-changes/")],
    ("audit/permission-changes/csv/", "get"): [Call("audit/permission-changes/csv/")],
    ("audit/unusual-reads/", "get"): [Call("audit/unusual-reads/")],
    ("audit/sinks/", "post"): [Call("audit/sinks/", SINK)],
    ("audit/sinks/<uuid:sink_id>/retry/", "post"): [Call("audit/sinks/{sink}/retry/")],
    ("audit/sinks/<uuid:sink_id>/", "delete"): [Call("audit/sinks/{sink}/")],
    ("sync/peers/", "post"): [Call("sync/peers/", PEER)],
    ("sync/peers/<uuid:peer_id>/", "patch"): [Call("sync/peers/{peer}/", {"direction": "push"})],
    ("sync/peers/<uuid:peer_id>/schedule/", "put"): [Call("sync/peers/{peer}/schedule/", {"cron": "0 3 * * *"})],
    ("sync/peers/<uuid:peer_id>/run/", "post"): [Call("sync/peers/{peer}/run/")],
    ("sync/peers/<uuid:peer_id>/", "delete"): [Call("sync/peers/{peer}/")],
    ("sync/memories/", "get"): [Call("sync/memories/?namespace=/nightingale")],
    ("sync/memories/read/", "post"): [
        Call("sync/memories/read/", {"namespace": "/nightingale", "memories": {"{cube}": 0}})
    ],
    ("sync/memories/write/", "post"): [Call("sync/memories/write/", {"namespace": "/nightingale", "changes": [SENT]})],
    ("models/", "post"): [Call("models/", ENDPOINT)],
    ("models/<uuid:endpoint_id>/", "patch"): [Call("models/{endpoint}/", {"position": 1})],
    ("models/<uuid:endpoint_id>/", "delete"): [Call("models/{endpoint}/")],
    ("grants/", "get"): [Call("grants/"), Call("grants/?object_type=memory")],
    ("grants/", "post"): [Call("grants/", GRANT), Call("grants/", GRANT | {"effect": "deny"})],
    ("grants/check/", "post"): [
        Call("grants/check/", {name: GRANT[name] for name in ("principal", "object", "action")})
    ],
    ("grants/<uuid:grant_id>/", "get"): [Call("grants/{grant}/")],
    ("grants/<uuid:grant_id>/", "delete"): [Call("grants/{grant}/")],
    ("personas/", "get"): [Call("personas/")],
    ("personas/", "post"): [Call("personas/", {"name": "new"})],
    ("personas/<uuid:persona_id>/", "get"): [Call("personas/{persona}/")],
    ("personas/<uuid:persona_id>/", "patch"): [Call("personas/{persona}/", {"name": "newer"})],
    ("personas/<uuid:persona_id>/", "delete"): [Call("personas/{persona}/")],
    ("personas/<uuid:persona_id>/stm/", "get"): [Call("personas/{own}/stm/")],
    ("personas/<uuid:persona_id>/segments/", "get"): [Call("personas/{own}/segments/")],
    ("personas/<uuid:persona_id>/profile/", "get"): [Call("personas/{own}/profile/")],
    ("personas/<uuid:persona_id>/profile/", "patch"): [Call("personas/{own}/profile/", {"name": "nightingale"})],
    ("personas/<uuid:persona_id>/traits/", "get"): [Call("personas/{own}/traits/")],
    ("personas/<uuid:persona_id>/working-set/", "get"): [Call("personas/{own}/working-set/")],
    ("personas/<uuid:persona_id>/replay/", "post"): [Call("personas/{own}/replay/", {"settings": {"tau": 4}})],
    ("personas/<uuid:persona_id>/working-set/", "patch"): [Call("personas/{own}/working-set/", {"replacement": "lru"})],
    ("personas/<uuid:persona_id>/settings/", "patch"): [Call("personas/{own}/settings/", {"tau": 4})],
    ("layers/settings/", "patch"): [Call("layers/settings/", {"tau": 4})],
    ("role-templates/", "get"): [Call("role-templates/")],
    ("role-templates/", "post"): [Call("role-templates/", {"name": "new"})],
    ("role-templates/<uuid:template_id>/", "get"): [Call("role-templates/{template}/")],
    ("role-templates/<uuid:template_id>/", "patch"): [Call("role-templates/{template}/", {"name": "newer"})],
    ("role-templates/<uuid:template_id>/", "delete"): [Call("role-templates/{template}/")],
    ("role-templates/<uuid:template_id>/apply/", "post"): [
        Call("role-templates/{template}/apply/", {"kind": "persona", "id": "{persona}"})
    ],
    ("members/", "get"): [Call("members/")],
    ("invitations/", "get"): [Call("invitations/")],
    ("api-keys/", "get"): [Call("api-keys/")],
    ("invitations/", "post"): [Call("invitations/", {"email": "new@invited.example", "role": "viewer"})],
    ("members/<uuid:member_id>/", "patch"): [Call("members/{member}/", {"role": "editor"})],
    ("members/<uuid:member_id>/", "delete"): [Call("members/{member}/")],
    ("invitations/<uuid:invitation_id>/", "delete"): [Call("invitations/{invitation}/")],
    ("api-keys/", "post"): [Call("api-keys/", {"scopes": ["chat"], "name": "new"})],
    ("api-keys/<uuid:key_id>/", "patch"): [Call("api-keys/{key}/", {"name": "newer"})],
    ("api-keys/<uuid:key_id>/", "delete"): [Call("api-keys/{key}/")],
    ("api-keys/<uuid:key_id>/rotate/", "post"): [Call("api-keys/{key}/rotate/", {})],
    ("memory-calls/", "post"): [
        Call("memory-calls/", {"text": "And the lark?", "session_id": "{conversation}"}),
        Call("memory-calls/", {"text": "Remember that I like larks.", "execute": True}),
        Call("memory-calls/", {"text": "Where is the nightingale?", "execute": True}),
    ],
    ("memories/tool-calls/", "post"): [Call("memories/tool-calls/", {"name": "nightingale", "outcome": "failed"})],
    ("memories/tool-calls/search/", "post"): [Call("memories/tool-calls/search/", {"name": "nightingale"})],
    ("memories/facets/", "get"): [Call("memories/facets/")],
    ("memories/actions/", "post"): [
        Call("memories/actions/", {"action": "tag", "filters": {"tags": "nightingale"}, "args": {"tags": ["new"]}}),
        Call("memories/actions/", {"action": "export", "filters": {"tags": "nightingale"}}),
    ],
    ("imports/uploads/<uuid:upload_id>/", "delete"): [Call("imports/uploads/{upload}/")],
    ("exports/", "post"): [Call("exports/", {}), Call("exports/", {"filters": {"tags": "nightingale"}})],
    ("exports/<uuid:job_id>/jsonl/", "get"): [Call("exports/{exported}/jsonl/")],
    ("exports/<uuid:job_id>/markdown/", "get"): [Call("exports/{exported}/markdown/")],
    ("exports/<uuid:job_id>/mempack/", "get"): [Call("exports/{exported}/mempack/")],
    ("memories/actions/<uuid:job_id>/file/", "get"): [Call("memories/actions/{exported}/file/")],
    ("memories/<uuid:memory_id>/versions/<int:number>/", "get"): [Call("memories/{cube}/versions/1/")],
    ("memories/<uuid:memory_id>/diff/", "get"): [Call("memories/{cube}/diff/?from=1&to=2")],
    ("memories/<uuid:memory_id>/rollback/", "post"): [Call("memories/{cube}/rollback/", {"version": 2})],
    ("memories/<uuid:memory_id>/move/", "post"): [Call("memories/{cube}/move/", {"namespace": "/brand/new"})],
    ("publications/", "get"): [Call("publications/")],
    ("publications/own/", "get"): [Call("publications/own/")],
    ("publications/<uuid:publication_id>/", "get"): [Call("publications/{publication}/")],
    ("publications/", "post"): [Call("publications/", {"pack_version": "{pack_version}"})],
    ("publications/<uuid:publication_id>/try/", "post"): [
        Call("publications/{publication}/try/", {"queries": ["Where does the nightingale sing?"]})
    ],
    ("publications/<uuid:publication_id>/ratings/", "get"): [Call("publications/{foreign}/ratings/")],
    ("publications/<uuid:publication_id>/ratings/", "post"): [Call("publications/{foreign}/ratings/", {"stars": 4})],
    ("publications/<uuid:publication_id>/ratings/", "delete"): [Call("publications/{foreign}/ratings/")],
    ("publications/<uuid:publication_id>/reports/", "post"): [
        Call("publications/{foreign}/reports/", {"reason": "other"})
    ],
    ("publications/<uuid:publication_id>/approve/", "post"): [Call("publications/{waiting}/approve/")],
    ("publications/<uuid:publication_id>/reject/", "post"): [
        Call("publications/{doubtful}/reject/", {"reason": "new"})
    ],
    ("subscriptions/", "get"): [Call("subscriptions/")],
    ("subscriptions/", "post"): [Call("subscriptions/", {"publication": "{offered}"})],
    ("subscriptions/<uuid:subscription_id>/", "get"): [Call("subscriptions/{subscription}/")],
    ("subscriptions/<uuid:subscription_id>/", "patch"): [Call("subscriptions/{subscription}/", {"delivery": "push"})],
    ("subscriptions/<uuid:subscription_id>/", "delete"): [Call("subscriptions/{ending}/")],
    ("subscriptions/<uuid:subscription_id>/invocations/", "get"): [Call("subscriptions/{subscription}/invocations/")],
    ("subscriptions/<uuid:subscription_id>/upgrade/", "post"): [
        Call("subscriptions/{subscription}/upgrade/", {"version": "1.0.0"})
    ],
    ("subscriptions/<uuid:subscription_id>/proposals/", "post"): [
        Call("subscriptions/{of_foreign}/proposals/", {"memory": "{foreign_memory}", "content": "Anew.", "reason": "x"})
    ],
    ("proposals/", "get"): [Call("proposals/")],
    ("packs/<uuid:pack_id>/trace/", "post"): [Call("packs/{pack}/trace/", {"text": "A nightingale."})],
    ("contracts/<uuid:contract_id>/file/", "get"): [Call("contracts/{contract}/file/")],
    ("proposals/<uuid:proposal_id>/accept/", "post"): [Call("proposals/{proposal}/accept/")],
    ("proposals/<uuid:proposal_id>/decline/", "post"): [Call("proposals/{unwanted}/decline/", {"reason": "new"})],
    ("subscriptions/<uuid:subscription_id>/compare/", "post"): [Call("subscriptions/{subscription}/compare/")],
    ("subscriptions/<uuid:subscription_id>/overrides/<uuid:memory_id>/", "put"): [
        Call("subscriptions/{subscription}/overrides/{installed}/", {"content": "Reworded."})
    ],
    ("subscriptions/<uuid:subscription_id>/overrides/<uuid:memory_id>/", "delete"): [
        Call("subscriptions/{subscription}/overrides/{reworded}/")
    ],
    ("contracts/", "get"): [Call("contracts/")],
    ("contracts/<uuid:contract_id>/", "get"): [Call("contracts/{contract}/")],
    ("contracts/<uuid:contract_id>/invocations/", "get"): [Call("contracts/{contract}/invocations/")],
    ("contracts/<uuid:contract_id>/invoice/", "get"): [Call("contracts/{contract}/invoice/")],
    ("contracts/<uuid:contract_id>/revoke/", "post"): [Call("contracts/{contract}/revoke/", {"reason": "new"})],
    ("contracts/<uuid:contract_id>/allow/", "post"): [Call("contracts/{revoked}/allow/")],
    ("packs/", "get"): [Call("packs/")],
    ("packs/<uuid:pack_id>/", "get"): [Call("packs/{pack}/")],
    ("packs/<uuid:pack_id>/versions/", "get"): [Call("packs/{pack}/versions/")],
    ("packs/<uuid:pack_id>/versions/<str:number>/", "get"): [Call("packs/{pack}/versions/1.0.0/")],
    ("packs/<uuid:pack_id>/versions/<str:number>/", "delete"): [Call("packs/{pack}/versions/0.9.0/")],
    ("packs/", "post"): [Call("packs/", {"name": "new", "title": "New"})],
    ("packs/<uuid:pack_id>/", "patch"): [Call("packs/{pack}/", {"title": "Newer"})],
    ("packs/<uuid:pack_id>/", "delete"): [Call("packs/{empty_pack}/")],
    ("packs/<uuid:pack_id>/preview/", "post"): [Call("packs/{pack}/preview/", {"ids": ["{cube}"]})],
    ("packs/<uuid:pack_id>/versions/", "post"): [
        Call("packs/{pack}/versions/", {"version": "2.0.0", "ids": ["{cube}"]})
    ],
    ("packs/<uuid:pack_id>/versions/<str:number>/preview/", "get"): [Call("packs/{pack}/versions/1.0.0/preview/")],
    ("packs/<uuid:pack_id>/versions/<str:number>/file/", "get"): [Call("packs/{pack}/versions/1.0.0/file/")],
    ("packs/<uuid:pack_id>/versions/<str:number>/deprecate/", "post"): [
        Call("packs/{pack}/versions/1.0.0/deprecate/", {"reason": "new"})
    ],
    ("packs/<uuid:pack_id>/versions/<str:number>/yank/", "post"): [
        Call("packs/{pack}/versions/1.0.0/yank/", {"reason": "new"})
    ],
    ("subjects/", "get"): [Call("subjects/")],
    ("subjects/", "post"): [Call("subjects/", {"reference": "new"})],
    ("subjects/<uuid:subject_id>/", "get"): [Call("subjects/{subject}/")],
    ("subjects/<uuid:subject_id>/assign/", "post"): [Call("subjects/{subject}/assign/", {"ids": ["{cube}"]})],
    ("subjects/<uuid:subject_id>/export/", "post"): [Call("subjects/{subject}/export/")],
    ("subjects/<uuid:subject_id>/exports/<uuid:job_id>/json/", "get"): [
        Call("subjects/{subject}/exports/{subject_export}/json/")
    ],
    ("subjects/<uuid:subject_id>/exports/<uuid:job_id>/html/", "get"): [
        Call("subjects/{subject}/exports/{subject_export}/html/")
    ],
    ("subjects/<uuid:subject_id>/erase/", "post"): [Call("subjects/{subject}/erase/")],
    ("namespaces/", "post"): [Call("namespaces/", {"path": "/brand/newer"})],
    ("namespaces/<uuid:namespace_id>/restore/", "post"): [
        Call("namespaces/{namespace}/restore/", {"as_of": "2020-01-01T00:00:00Z"})
    ],
    ("mounts/", "post"): [Call("mounts/", {"namespace": "/nightingale", "task_id": "new"})],
    ("mounts/<uuid:mount_id>/", "delete"): [Call("mounts/{mount}/")],
    ("sessions/<str:session_id>/end/", "post"): [Call("sessions/new/end/")],
    ("namespaces/<uuid:namespace_id>/", "patch"): [Call("namespaces/{namespace}/", {"read_only": True})],
    ("namespaces/<uuid:namespace_id>/", "delete"): [Call("namespaces/{empty}/")],
    ("namespaces/<uuid:namespace_id>/move/", "post"): [Call("namespaces/{namespace}/move/", {"path": "/brand/newest"})],
    ("views/", "post"): [Call("views/", {"name": "new", "query": "q=x"})],
    ("views/<uuid:view_id>/", "delete"): [Call("views/{view}/")],
    ("pipelines/", "post"): [Call("pipelines/", {"name": "new", "steps": STEPS})],
    ("pipelines/run/", "post"): [Call("pipelines/run/", {"steps": STEPS})],
    ("pipelines/<uuid:pipeline_id>/", "patch"): [Call("pipelines/{pipeline}/", {"name": "newer"})],
    ("pipelines/<uuid:pipeline_id>/", "delete"): [Call("pipelines/{pipeline}/")],
    ("pipelines/<uuid:pipeline_id>/run/", "post"): [Call("pipelines/{pipeline}/run/")],
}
SIMULATED = {"kind": "retention", "document": {"max_seconds": 60}}
NEEDS_NO_ROW = {
    ("members/<uuid:member_id>/", "get"): "an address and a role; no content",
    ("invitations/<uuid:invitation_id>/", "get"): "the same of one who is invited",
    ("api-keys/<uuid:key_id>/", "get"): "name, end and scopes; no secret",
    ("api-keys/<uuid:key_id>/requests/", "get"): "routes, status and latency; no content",
    ("personas/<uuid:persona_id>/settings/", "get"): "numbers; no content",
    ("layers/settings/", "get"): "numbers; no content",
    ("me/", "get"): "everyone may know who they are; no content",
    ("memories/<uuid:memory_id>/relations/", "get"): "ids, kinds and times; no content",
    ("namespaces/", "get"): "paths, counts and rights; no content",
    ("namespaces/<uuid:namespace_id>/", "get"): "the same of one",
    ("namespaces/<uuid:namespace_id>/entries/<str:key>/", "get"): "ids and times; no content",
    ("namespaces/<uuid:namespace_id>/summary/", "get"): "nothing is summed up here; else as quoted: test_summaries",
    ("mounts/", "get"): "paths, ids and names of tasks; no content",
    ("forms/<uuid:form_id>/approve/", "post"): "the form of this world is a cache, which nobody approves",
    ("pipelines/", "get"): "names and steps that the member wrote",
    ("pipelines/<uuid:pipeline_id>/", "get"): "the same of one",
    ("views/", "get"): "names and addresses of lists; no content",
    ("provenance/key/", "get"): "a public key",
    ("exports/key/", "get"): "a public key",
    ("jobs/<uuid:job_id>/undo/", "post"): "no kind of job can be undone yet",
    ("schedules/", "get"): "kinds and times; no content",
    ("schedules/<uuid:schedule_id>/", "get"): "a kind and times; no content",
    ("jobs/", "get"): "kind, status and ids; no content",
    ("jobs/<uuid:job_id>/", "get"): "kind, status and ids; no content",
    ("policies/", "get"): "what the rules are; no content",
    ("policies/<uuid:policy_id>/", "get"): "what a rule is; no content",
    ("policies/<uuid:policy_id>/versions/", "get"): "what a rule was; no content",
    ("policies/simulate/", "post"): "counts and ids; nothing is opened, nothing changes",
    ("quotas/", "get"): "numbers; no content",
    ("audit/checkpoints/", "get"): "numbers and times",
    ("audit/public-key/", "get"): "made to be known",
    ("audit/export/", "get"): "what the caller asked for, and how it fares",
    ("audit/export/<uuid:export_id>/", "get"): "the same of one",
    ("packs/verify/", "post"): "a verdict about a file that the caller sent",
    ("webhooks/", "get"): "addresses and events; no secret",
    ("webhooks/<uuid:webhook_id>/", "get"): "the same of one",
    ("webhooks/<uuid:webhook_id>/deliveries/", "get"): "events and ids; no content",
    ("imports/", "post"): "without a file nothing happens; a job has its row: tests/vault/exchange",
    ("imports/uploads/", "post"): "without a part nothing happens; a file has its row: tests/vault/exchange",
    ("imports/uploads/<uuid:upload_id>/", "post"): "a part of a file that has its row",
    ("audit/sinks/", "get"): "settings and counts",
    ("audit/sinks/<uuid:sink_id>/", "get"): "the same of one",
    ("sync/peers/", "get"): "settings, without keys",
    ("sync/peers/<uuid:peer_id>/", "get"): "the same of one",
    ("models/", "get"): "settings, without keys",
    ("models/<uuid:endpoint_id>/", "get"): "the same of one",
    ("models/usage/", "get"): "counts and costs",
}
DENIALS: list[tuple[str, str, str, Any, str, str]] = [
    ("bob", "POST", "memories/", {"content": "x"}, "memory.create", "role:viewer"),
    ("bob", "GET", "memories/{cube}/", None, "memory.read", "private"),
    ("bob", "PATCH", "memories/{cube}/", {"importance": 1}, "memory.update", "role:viewer"),
    ("bob", "DELETE", "memories/{cube}/", None, "memory.delete", "role:viewer"),
    ("alice", "DELETE", "memories/{cube}/", None, "memory.delete", "private"),
    ("ada", "GET", "memories/", None, "memory.read", "role:auditor"),
    ("ada", "POST", "memories/search/", {"query": "x"}, "memory.read", "role:auditor"),
    ("ada", "POST", "conversations/", {}, "conversation.use", "role:auditor"),
    ("ada", "POST", "models/", ENDPOINT, "operations.manage", "role:auditor"),
    ("ada", "POST", "audit/sinks/", SINK, "operations.manage", "role:auditor"),
    *(
        (who, method, address, body, "audit.read", f"role:{role}")
        for who, role in (("alice", "editor"), ("bob", "viewer"))
        for method, address, body in (
            ("GET", "audit/", None),
            ("GET", "audit/verify/", None),
            ("POST", "audit/export/", {}),
            ("GET", "audit/export/", None),
            ("GET", "audit/checkpoints/", None),
            ("GET", "audit/public-key/", None),
            ("GET", "audit/permission-changes/", None),
            ("GET", "audit/permission-changes/csv/", None),
            ("GET", "audit/unusual-reads/", None),
        )
    ),
]


def _routes() -> set[tuple[str, str]]:
    return {
        (str(route.pattern), method)
        for route in (*routes_of_the_vault, *routes_of_jobs, *routes_of_the_trail, *routes_of_access, *routes_of_people)
        if isinstance(route, URLPattern)
        for method in METHODS
        if hasattr(route.callback.view_class, method)  # type: ignore[attr-defined]
    }


def _receive_again(proposal: PackProposal) -> PackProposal:
    """Another proposal with the same texts."""
    texts = texts_open(proposal)
    row = PackProposal.objects.get(id=proposal.id)
    row.id, row.source_id = uuid7(), uuid7()
    row.sealed = texts_seal(row, texts)
    row.save(force_insert=True)
    return row


def _fail_delivery() -> UUID:
    delivery = WebhookDelivery.objects.latest("id")
    WebhookDelivery.objects.filter(id=delivery.id).update(status=DeliveryStatus.FAILED)
    return delivery.id


@pytest.fixture
def places(world: World) -> dict[str, Any]:
    """The rows that the addresses name, all olivia's."""
    filled = fill(world.olivia, "nightingale")
    client = world.client("olivia")
    deleted = client.post("memories/", {"content": "the deleted nightingale"}).json["results"][0]["id"]
    assert client.delete(f"memories/{deleted}/").status == 204
    plain = client.post("memories/", {"content": "a nightingale that may leave in a pack"}).json["results"][0]["id"]
    assert client.post("memories/actions/", {"action": "export", "ids": [str(filled.cube_id), plain]}).status == 202
    subject = client.post("subjects/", {"reference": "of a test"}).json["id"]
    subject_export = client.post(f"subjects/{subject}/export/").json["job"]["id"]
    run_jobs()
    view = client.post("views/", {"name": "of a test", "query": "q=x"}).json["id"]
    empty = client.post("namespaces/", {"path": "/empty"}).json["id"]
    for who in ("ann", "ben", "cai"):
        assert client.post("memories/", {"content": f"nightingale, {who}@birds.example"}).status == 201
    waiting, doubtful = (_publication_waiting(world, name) for name in ("larks", "owls"))
    empty_pack = client.post("packs/", {"name": "empty", "title": "Empty"}).json["id"]
    with acting(world.olivia.actor):
        pack = Pack.objects.get(name="nightingale").id
    choice = {"version": "0.9.0", "ids": [str(filled.cube_id)]}
    assert client.post(f"packs/{pack}/versions/", choice).status == 202
    run_jobs()
    offered, ending = (_approve_publication(client, world, name) for name in ("wrens", "rooks"))
    ended = client.post("subscriptions/", {"publication": ending}).json["subscription"]["id"]
    foreign = offered_pack(contract(world, "charlie"), "The coots sing at noon.", name="coots")
    of_foreign = subscribe(contract(world, "olivia"), foreign)["id"]
    assert client.post(f"publications/{foreign}/ratings/", {"stars": 5}).status == 201
    with acting(world.olivia.actor):
        subscription = Subscription.objects.get(name__endswith="/nightingale")
        proposal = PackProposal.objects.get(source_id__isnull=False)
        memory_of_pack = PackMemory.objects.get(subscription=subscription)
        PackMemory.objects.filter(id=memory_of_pack.id).update(is_overridden=True)
        Job.objects.filter(id=filled.job_id).update(status=JobStatus.FAILED, dead_letter=True)
        Job.objects.filter(kind=Topic.PACK_INSTALL).update(status=JobStatus.PENDING)
        Contract.objects.filter(subscription_id=ended).update(state=ContractState.REVOKED)
        flagged, doubted, declined = Review.objects.order_by("-id").values_list("id", flat=True)[:3]
    assert client.post(f"reviews/{declined}/reject/").status == 200
    with acting(world.olivia.actor):
        of_the_trail = {
            "entry": AuditEntry.objects.latest("id").id,
            "checkpoint": AuditCheckpoint.objects.latest("id").id,
            "export": Job.objects.filter(kind=Topic.AUDIT_EXPORT).latest("id").id,
            "exported": Job.objects.filter(kind=Topic.MEMORIES_EXPORT).latest("id").id,
            "schedule": Schedule.objects.latest("id").id,
            "sink": AuditSink.objects.latest("id").id,
            "webhook": Webhook.objects.latest("id").id,
            "delivery": _fail_delivery(),
            "peer": SyncPeer.objects.latest("id").id,
            "endpoint": ModelEndpoint.objects.latest("id").id,
            "view": view,
            "pipeline": Pipeline.objects.latest("id").id,
            "form": MemoryForm.objects.latest("id").id,
            "form_proposal": FormProposal.objects.latest("id").id,
            "upload": Upload.objects.latest("id").id,
            "subject": subject,
            "pack": pack,
            "empty_pack": empty_pack,
            "pack_version": PackVersion.objects.get(pack__name="nightingale", number="1.0.0").id,
            "publication": Publication.objects.get(pack__name="nightingale").id,
            "waiting": waiting,
            "foreign": foreign,
            "of_foreign": of_foreign,
            "foreign_memory": PackMemory.objects.get(subscription_id=of_foreign).cube_id,
            "proposal": proposal.id,
            "unwanted": _receive_again(proposal).id,
            "offered": offered,
            "ending": ended,
            "subscription": subscription.id,
            "installed": memory_of_pack.cube_id,
            "reworded": memory_of_pack.cube_id,
            "revoked": Contract.objects.get(subscription_id=ended).id,
            "contract": Contract.objects.get(subscription_id=subscription.id).id,
            "doubtful": doubtful,
            "subject_export": subject_export,
            "mount": Mount.objects.get().id,
            "namespace": Namespace.objects.get(path="/nightingale").id,
            "empty": empty,
        }
        access = {
            "grant": PersonaGrant.objects.get().id,
            "persona": Persona.objects.get(kind="agent").id,
            "own": Persona.objects.get(member_id=world.olivia.member.id, kind="user").id,
            "template": RoleTemplate.objects.get().id,
            "invitation": Invitation.objects.get().id,
            "member": world.bob.member.id,
            "key": world.bob.key.id,
        }
    whole, part = (client.post("memories/", {"content": text}).json["results"][0]["id"] for text in ("whole", "part"))
    relation = client.post(f"memories/{whole}/relations/", {"memory_id": part, "kind": "follows"}).json["id"]
    return of_the_trail | {
        "relation": relation,
        "memory": whole,
        "part": part,
        "flagged": flagged,
        "doubted": doubted,
        "declined": declined,
        "cube": filled.cube_id,
        "deleted": deleted,
        "conversation": filled.conversation_id,
        "job": filled.job_id,
        "kept": client.post("memories/", {"content": "the kept nightingale"}).json["results"][0]["id"],
        "twin": client.post("memories/", {"content": "the twin nightingale"}).json["results"][0]["id"],
        "whole": whole,
        "merged": _merge(client),
        "hold": client.post("holds/", {"reason": "nightingale", "subject": "the nightingale's"}).json["id"],
        "policy": filled.policy_id,
        **access,
    }


def _publication_waiting(world: World, name: str) -> str:
    """Offer a pack as another admin, for olivia to approve."""
    client = client_for(person_add(world.acme, f"{name}@acme.example", RoleName.ADMIN).key.text)
    pack = client.post("packs/", {"name": name, "title": name.title()}).json["id"]
    memory = client.post("memories/", {"content": f"The {name} sing at dawn."}).json["results"][0]["id"]
    client.post(f"packs/{pack}/versions/", {"version": "1.0.0", "ids": [memory]})
    run_jobs()
    version = client.get(f"packs/{pack}/versions/1.0.0/").json["id"]
    found: str = client.post("publications/", {"pack_version": version, "visibility": "installation"}).json["id"]
    return found


def _approve_publication(client: ApiClient, world: World, name: str) -> str:
    found = _publication_waiting(world, name)
    assert client.post(f"publications/{found}/approve/").status == 200
    return found


def _merge(client: ApiClient) -> str:
    added = client.post("memories/", {"content": "The nightingale sings. The nightingale sleeps."}).json
    found: str = added["results"][0]["id"]
    assert client.post(f"memories/{found}/split/", {"parts": ["It sings.", "It sleeps."]}).status == 201
    return found


def _fill_in(body: Any, places: dict[str, Any]) -> Any:
    """The body with the ids of the rows that it names."""
    if isinstance(body, dict):
        return {_fill_in(name, places): _fill_in(value, places) for name, value in body.items()}
    if isinstance(body, list):
        return [_fill_in(value, places) for value in body]
    return str(places[body[1:-1]]) if isinstance(body, str) and body[:1] == "{" else body


def test_every_route_is_listed() -> None:
    assert _routes() == set(CALLS) | set(NEEDS_NO_ROW)


def test_without_the_audit_log_nothing_changes_and_nothing_is_reported(
    world: World, places: dict[str, Any], superuser: Superuser, evidence: Evidence
) -> None:
    root = superuser()
    root.execute("REVOKE INSERT ON governance_auditentry FROM memos_app")
    client, before = world.client("olivia"), read_all_rows(root)
    for (_, method), calls in CALLS.items():
        for call in calls:
            reply = client.send(
                method.upper(), call.address.format(**places), _fill_in(call.body, places), **call.headers()
            )
            assert (reply.status, reply.code) == (503, "audit_unavailable"), (method, call, reply)
            assert b"nightingale" not in reply.body
            assert reply.headers["Retry-After"]
            assert read_all_rows(root) == before, (method, call)
    asked = sum(len(calls) for calls in CALLS.values())
    figures = {"addresses and methods": len(CALLS), "calls": asked, "answered 503": asked, "changed a row": 0}
    evidence(row=6, name="audited-or-refused", figures=figures | {"need no row": len(NEEDS_NO_ROW)})


def test_an_audit_log_that_writes_nothing_shows(
    world: World, places: dict[str, Any], superuser: Superuser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: what is to be recorded is not, and happens all the same."""
    root, client = superuser(), world.client("olivia")
    root.execute("REVOKE INSERT ON governance_auditentry FROM memos_app")
    written = 'cursor.execute(f"WITH entry AS ({INSERT}) {statement}" if statement else INSERT, [*row, *values])'
    forgetful = mutant(services, written, "pass")
    monkeypatch.setattr(services.record, "__code__", forgetful.record.__code__)
    before = read_all_rows(root)
    reply = client.get(f"memories/{places['cube']}/")
    assert (reply.status, b"nightingale" in reply.body) == (200, True)
    assert client.patch(f"memories/{places['cube']}/", {"importance": 1.0}, if_match='"3"').status == 200
    assert read_all_rows(root) != before


def test_what_needs_no_row_tells_no_content(world: World, places: dict[str, Any], superuser: Superuser) -> None:
    root = superuser()
    root.execute("REVOKE INSERT ON governance_auditentry FROM memos_app")
    for route, method in NEEDS_NO_ROW:
        address = re.sub(r"<uuid:(\w+)_id>", lambda found: str(places[found[1]]), route).replace("<str:key>", "none")
        reply = world.client("olivia").send(method.upper(), address, SIMULATED if "simulate" in address else None)
        expected = 409 if route.endswith(("undo/", "approve/")) else 404 if route.endswith("<str:key>/") else 200
        is_file = route == "packs/verify/" or route.startswith("imports/")
        expected = 400 if is_file else expected  # it was sent no file
        assert reply.status == expected, (route, reply)
        shown = reply.body
        for name in (
            b"nightingale@invited.example",
            b'"/nightingale',
            b"/packs/acme/nightingale",
            b"nightingale view",
            b"q=nightingale",
            b"nightingale pipeline",
            b'"query":"nightingale"',
            b"nightingale-task",
        ):
            shown = shown.replace(name, b"")  # an address, a path and what a member called a list
        assert b"nightingale" not in shown, route


def test_with_the_audit_log_the_same_calls_succeed_and_leave_rows(world: World, places: dict[str, Any]) -> None:
    """Control for the refusals above: no call fails for another reason."""
    ending = [
        "memories/<uuid:memory_id>/",
        "conversations/<uuid:conversation_id>/",
        "personas/<uuid:persona_id>/",
        "role-templates/<uuid:template_id>/",
        "audit/sinks/<uuid:sink_id>/",
        "models/<uuid:endpoint_id>/",
        "sync/peers/<uuid:peer_id>/",
        "schedules/<uuid:schedule_id>/",
        "views/<uuid:view_id>/",
        "pipelines/<uuid:pipeline_id>/",
        "api-keys/<uuid:key_id>/",
        "members/<uuid:member_id>/",
    ]
    last = [(route, "delete") for route in ending]
    # Holds of this world refuse the first, see tests/vault/deletion, and no engine runs for the second.
    refused = {("organisation/deletion/", "post"), ("forms/", "post")}
    for route, method in [*(call for call in CALLS if call not in {*last, *refused}), *last]:
        for call in CALLS[(route, method)]:
            rows = _rows(world)
            sent = {"if_match": '"3"'} if route.startswith("memories/") and method == "patch" else {}
            reply = world.client("olivia").send(
                method.upper(), call.address.format(**places), _fill_in(call.body, places), **(call.headers() | sent)
            )
            assert reply.status in {200, 201, 202, 204}, (method, call, reply)
            assert _rows(world) > rows, (method, call)


def test_a_stored_reply_is_repeated_only_in_the_audit_log(world: World, superuser: Superuser) -> None:
    root = superuser()
    client, body = world.client("alice"), {"content": "the nightingale"}
    assert client.post("memories/", body, idempotency_key="once").status == 201
    rows = _rows(world)
    assert client.post("memories/", body, idempotency_key="once").status == 201
    assert _rows(world) == rows + 1
    root.execute("REVOKE INSERT ON governance_auditentry FROM memos_app")
    reply = client.post("memories/", body, idempotency_key="once")
    assert (reply.status, reply.code) == (503, "audit_unavailable")
    assert b"nightingale" not in reply.body


def test_a_denial_is_recorded_or_is_a_503(world: World, superuser: Superuser) -> None:
    root = superuser()
    cube = world.client("olivia").post("memories/", {"content": "private"}).json["results"][0]["id"]
    for who, method, address, body, permission, rule in DENIALS:
        before = read_all_rows(root)
        reply = world.client(who).send(method, address.format(cube=cube), body)
        expected = (404, "not_found") if "{cube}" in address else (403, "forbidden")  # it is private
        assert (reply.status, reply.code) == expected, (who, method, address)
        with acting(world.olivia.actor):
            row = AuditEntry.objects.filter(outcome=Outcome.DENIED).latest("id")
        assert (row.detail["permission"], row.detail["rule"]) == (permission, rule)
        assert row.member_id == world.person(who).member.id
        after = read_all_rows(root)
        assert len(after.pop("governance_auditentry")) == len(before.pop("governance_auditentry")) + 1
        assert after == before
    root.execute("REVOKE INSERT ON governance_auditentry FROM memos_app")
    for who, method, address, body, _, _ in DENIALS:
        reply = world.client(who).send(method, address.format(cube=cube), body)
        assert (reply.status, reply.code) == (503, "audit_unavailable"), (who, method, address)


def test_a_foreign_memory_is_the_same_404_as_one_that_never_was(world: World, superuser: Superuser) -> None:
    root = superuser()
    cube = world.client("olivia").post("memories/", {"content": "private"}).json["results"][0]["id"]
    before = read_all_rows(root)
    for method, body in (("GET", None), ("PATCH", {"importance": 1}), ("DELETE", None)):
        foreign, random = (
            world.client("charlie").send(method, f"memories/{id}/", body, if_match='"1"', x_request_id="the-same-id")
            for id in (cube, uuid4())
        )
        assert foreign.status == 404
        assert foreign.body == random.body
    assert read_all_rows(root) == before


def _rows(world: World) -> int:
    with acting(world.olivia.actor):
        return AuditEntry.objects.count()
