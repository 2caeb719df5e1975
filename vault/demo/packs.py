"""The packs of the demo, which a second tenant offers to every organisation of the installation."""

import json
from dataclasses import dataclass, fields
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from governance.actor import Actor, CallContext
from governance.database import acting, tenant_transaction
from governance.errors import Conflict
from governance.models import Member
from governance.outbox.claims import event_claim
from governance.outbox.runner import task_run
from governance.tenants.principals import reload_actor
from governance.tenants.selectors import me_get, tenant_id_by_slug
from governance.tenants.services import command_line_actor, member_add, tenant_create
from governance.vocabulary import Channel, PrincipalKind, RoleName, Topic
from vault.content.drafts import CubeDraft
from vault.cubes.services import cubes_add
from vault.models import Pack, PackVersion, Publication, Subscription
from vault.store.catalogue import listing_get_by_name
from vault.store.publications import PublicationDraft, publication_approve, publication_create
from vault.store.services import PackDraft, VersionDraft, pack_create, version_build
from vault.store.subscriptions import SubscriptionDraft, subscription_create
from vault.vocabulary import PackState, PackTopic, Visibility

PUBLISHER, PUBLISHER_NAME = "open-shelf", "Open Shelf"
WRITER, APPROVER = "lena@open-shelf.example", "amir@open-shelf.example"
SUBSCRIBED = "first-aid"
NUMBER = "1.0.0"
REQUEST_ID = "demo"
BUILD_LIMIT = timedelta(minutes=5)
TEXTS = Path(__file__).parent / "data" / "packs"


@dataclass(frozen=True)
class DemoPack:
    draft: PackDraft
    memories: tuple[str, ...]


def packs_read() -> list[DemoPack]:
    """Return the packs of the demo, one per file, sorted by name."""
    return [_parse_pack(json.loads(path.read_text(encoding="utf-8"))) for path in sorted(TEXTS.glob("*.json"))]


def demo_packs_create(*, subscriber: str) -> int:
    """Publish the packs of the demo, subscribe the tenant `subscriber` to one, and return the number of packs.

    Existing packs stay unchanged. The worker installs the memories of the subscription later. Raises Conflict if
    another tenant has the publisher's name, or a version is not ready; KeyUnavailable. Writes: Tenant, Member …, Cube
    …, Pack …, PackVersion …, Publication …, Subscription, and their Job and AuditEntry rows.
    """
    packs = packs_read()
    writer, approver = _make_publishers()
    for pack in packs:
        _build_pack(writer, pack)
        _publish_pack(writer, approver, pack.draft.name)
    _subscribe_tenant(subscriber)
    return len(packs)


def _parse_pack(stated: dict[str, Any]) -> DemoPack:
    names = {field.name for field in fields(PackDraft)}
    texts: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in stated.items()}
    memories = texts.pop("memories")
    if unknown := texts.keys() - names:
        raise ValueError(f"{stated['name']} has unknown fields: {', '.join(sorted(unknown))}")
    texts["topic"] = PackTopic(texts["topic"])
    return DemoPack(PackDraft(**texts), memories)


def _make_publishers() -> tuple[Actor, Actor]:
    """Return the writer and the approver of the packs; create their tenant if it does not exist. Raises Conflict."""
    tenant_id = tenant_id_by_slug(PUBLISHER)
    if tenant_id is None:
        tenant_id = tenant_create(slug=PUBLISHER, name=PUBLISHER_NAME, owner_email=WRITER)[0].id
    system = command_line_actor(tenant_id)
    with acting(system):
        if me_get(actor=system).tenant_name != PUBLISHER_NAME:
            raise Conflict(f"The tenant {PUBLISHER} is not the demo's. Its packs cannot be published.")
        if not Member.objects.filter(tenant_id=tenant_id, role__name=RoleName.ADMIN).exists():
            member_add(actor=system, email=APPROVER, role=RoleName.ADMIN)
    return _find_member(tenant_id, RoleName.OWNER), _find_member(tenant_id, RoleName.ADMIN)


def _find_member(tenant_id: UUID, role: RoleName) -> Actor:
    with tenant_transaction(tenant_id):
        members = Member.objects.filter(tenant_id=tenant_id, role__name=role, removed_at=None).order_by("id")
        member_id = members.values_list("id", flat=True)[0]
    return reload_actor(
        tenant_id=tenant_id,
        kind=PrincipalKind.MEMBER,
        principal_id=member_id,
        request_id=REQUEST_ID,
        context=CallContext(channel=Channel.WEB),
    )


def _build_pack(writer: Actor, pack: DemoPack) -> None:
    """Create memories, pack and version in one transaction, then run its job under a lease, so that no worker takes
    it."""
    with acting(writer):
        if Pack.objects.filter(tenant_id=writer.tenant_id, name=pack.draft.name).exists():
            return
        path = f"/packs-of-ours/{pack.draft.name}"
        added = cubes_add(actor=writer, drafts=[CubeDraft(text, namespace=path) for text in pack.memories])
        made = pack_create(actor=writer, draft=pack.draft)
        draft = VersionDraft(NUMBER, ids=tuple(memory.cube.id for memory in added), changelog="The first version.")
        job = version_build(actor=writer, pack_id=made.id, draft=draft)
        task = event_claim(actor=writer, topic=Topic.PACK_BUILD, event_id=job.id, lease_time=BUILD_LIMIT)
    task_run(task)


def _publish_pack(writer: Actor, approver: Actor, name: str) -> None:
    """Publish a pack: the writer offers it, the approver approves. Raises Conflict."""
    with acting(writer):
        if Publication.objects.filter(tenant_id=writer.tenant_id, pack__name=name).exists():
            return
        version = PackVersion.objects.filter(tenant_id=writer.tenant_id, pack__name=name).defer("sealed").get()
        if version.state != PackState.READY:
            raise Conflict(f"The pack {name} is {version.state}. Run this again in five minutes.")
        draft = PublicationDraft(version.id, Visibility.INSTALLATION)
        asked = publication_create(actor=writer, draft=draft)
        publication_approve(actor=approver, publication_id=asked.id)


def _subscribe_tenant(slug: str) -> None:
    tenant_id = tenant_id_by_slug(slug)
    if tenant_id is None:
        raise Conflict(f"There is no tenant {slug}.")
    owner = _find_member(tenant_id, RoleName.OWNER)
    listing = listing_get_by_name(actor=owner, publisher=PUBLISHER, name=SUBSCRIBED)
    with acting(owner):
        if Subscription.objects.filter(tenant_id=tenant_id, publication_id=listing.id).exists():
            return
        subscription_create(actor=owner, draft=SubscriptionDraft(listing.id))
