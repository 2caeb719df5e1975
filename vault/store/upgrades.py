"""The changes of an upgrade by memory, and the subscriber's own wordings of installed memories."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from governance.access.decisions.services import authorize
from governance.actor import Actor, system_actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import Conflict, NotFound
from governance.jobs.selectors import JobView
from governance.vocabulary import Permission, Verb
from vault.content.drafts import CubeChanges
from vault.cubes.pack_reads import pack_read_require
from vault.cubes.services import cube_update
from vault.models import Cube, PackMemory, PackVersion, Publication, Subscription
from vault.store.files import Item, file_read
from vault.store.installation import Changes, Target, compare_versions, find_target
from vault.store.selectors import file_open
from vault.store.subscriptions import install_ask, subscription_locate, subscription_target
from vault.store.wordings import items_personalise
from vault.vocabulary import ContractState


class ChangeKind(StrEnum):
    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(frozen=True)
class MemoryChange:
    """The change of one memory. before, after: its text in each version; empty if that version lacks it.

    is_overridden: the subscriber's own wording is in use, and the upgrade leaves it unchanged.
    """

    key: UUID
    kind: ChangeKind
    before: str = field(repr=False)
    after: str = field(repr=False)
    is_overridden: bool


@dataclass(frozen=True)
class UpgradePlan:
    """The changes between two versions. changelog: of the later version."""

    before: str
    after: str
    changelog: str
    changes: tuple[MemoryChange, ...] = field(repr=False)

    def count(self, kind: ChangeKind) -> int:
        return sum(change.kind is kind for change in self.changes)

    @property
    def overridden(self) -> int:
        return sum(change.is_overridden for change in self.changes)


def upgrade_plan(*, actor: Actor, subscription_id: UUID, number: str = "") -> UpgradePlan:
    """Compare the installed version with another; empty: the newest in the range. The texts are a read of the pack.

    Raises NotFound; Forbidden; QuotaExhausted; Conflict where there is no such version. Writes: AuditEntry, PackRead ….
    """
    with acting(actor):
        row = subscription_locate(actor, subscription_id, lock=False)
        authorize(actor, Permission.STORE_MANAGE, subscription_target(row))
        if row.state != ContractState.ACTIVE:
            raise Conflict(f"The subscription is {row.state}.")
        pack_read_require(actor, row.namespace_id)
        record(actor=actor, verb=Verb.SUBSCRIPTION_READ, object_type="subscription", object_ids=[row.id])
    system = system_actor(tenant_id=actor.tenant_id, request_id=actor.request_id)
    target = find_target(system, row, number)
    installed, changelog = _read_published(row, target.number)
    with acting(actor):
        changes = compare_versions(row, target)
    return UpgradePlan(row.number, target.number, changelog, tuple(_list_changes(changes, installed, target)))


def override_set(*, actor: Actor, subscription_id: UUID, memory_id: UUID, content: str) -> Cube:
    """Reword an installed memory for the organisation; upgrades leave it unchanged.

    Raises NotFound; Forbidden; Conflict; Held; Invalid. Writes: PackMemory, Cube, CubeVersion, AuditEntry ….
    """
    with acting(actor):
        row = subscription_locate(actor, subscription_id)
        authorize(actor, Permission.STORE_MANAGE, subscription_target(row))
        if row.state != ContractState.ACTIVE:
            raise Conflict(f"The subscription is {row.state}.")
        memory = _locate_memory(row, memory_id)
        memory.is_overridden = True
        memory.save(update_fields=["is_overridden"])
        _note_override(actor, row, memory_id)
        system = system_actor(tenant_id=actor.tenant_id, request_id=actor.request_id)
        version = Cube.objects.get(tenant_id=actor.tenant_id, id=memory_id).version
        changes = CubeChanges(content=content)
        return cube_update(actor=system, cube_id=memory_id, expected_versions={version}, changes=changes)


def override_remove(*, actor: Actor, subscription_id: UUID, memory_id: UUID) -> JobView:
    """Restore the pack's own wording, by a job that installs the memory again.

    Raises NotFound; Forbidden; Conflict. Writes: PackMemory, Job, AuditEntry ….
    """
    with acting(actor):
        row = subscription_locate(actor, subscription_id)
        authorize(actor, Permission.STORE_MANAGE, subscription_target(row))
        memory = _locate_memory(row, memory_id)
        if not memory.is_overridden:
            raise Conflict("The memory has the pack's own wording.")
        memory.is_overridden, memory.digest = False, ""  # so that it differs from any version
        memory.save(update_fields=["is_overridden", "digest"])
        _note_override(actor, row, memory_id)
        return install_ask(actor=actor, subscription=row, number=row.number)


def _locate_memory(row: Subscription, memory_id: UUID) -> PackMemory:
    rows = PackMemory.objects.filter(tenant_id=row.tenant_id, subscription=row, cube_id=memory_id)
    memory = rows.select_for_update().first()
    if memory is None:
        raise NotFound
    return memory


def _note_override(actor: Actor, row: Subscription, memory_id: UUID) -> None:
    detail = {"memory": str(memory_id)}
    record(actor=actor, verb=Verb.SUBSCRIPTION_CHANGED, object_type="subscription", object_ids=[row.id], detail=detail)


def _read_published(row: Subscription, number: str) -> tuple[dict[UUID, Item], str]:
    """Return the memories of the installed version, none if it was erased, and the changelog of version `number`."""
    publisher = system_actor(tenant_id=row.publisher_id, request_id=f"subscription-{row.id}")
    with acting(publisher):
        publication = Publication.objects.get(tenant_id=row.publisher_id, id=row.publication_id)
        versions = PackVersion.objects.filter(pack_id=publication.pack_id)
        later, installed = (versions.filter(number=version_number).first() for version_number in (number, row.number))
        changelog = later.changelog if later else ""
        if installed is None or not installed.sealed:
            return {}, changelog
        items = items_personalise(installed, file_read(file_open(installed)).items, row.tenant_id)
        return {item.id: item for item in items}, changelog


def _list_changes(changes: Changes, installed: Mapping[UUID, Item], target: Target) -> Iterator[MemoryChange]:
    coming = {item.id: item for item in target.items}
    kinds = (
        (ChangeKind.ADDED, changes.added),
        (ChangeKind.CHANGED, changes.changed),
        (ChangeKind.REMOVED, changes.removed),
    )
    for kind, keys in kinds:
        for key in keys:
            before, after = (items[key].content if key in items else "" for items in (installed, coming))
            yield MemoryChange(key, kind, before, after, key in changes.overridden)
