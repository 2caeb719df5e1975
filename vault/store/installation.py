"""The job that makes the memories of a subscription match its contract: install, upgrade, remove.

It reads the publisher's file in a transaction of the publisher, and writes in transactions of the subscriber, as the
subscriber's system actor. Each step compares again, so that the job can be interrupted anywhere.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from uuid import UUID

from django.db.models.functions import Now

from governance.access.decisions.services import authorize
from governance.actor import Actor, system_actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import Conflict
from governance.ids import uuid7
from governance.jobs.kinds import JobRun, Step
from governance.jobs.registry import handler
from governance.models import Tenant
from governance.vocabulary import Permission, Topic, Verb
from vault.content.drafts import PACK_TRUST, CubeDraft
from vault.conversion.distillation import make_pairs
from vault.conversion.jobs import MadePayload, form_insert
from vault.cubes.selectors import cubes_view
from vault.cubes.services import cubes_add, cubes_erase
from vault.forms.payloads import payload_encode, payload_seal, payload_store
from vault.models import (
    Contract,
    Cube,
    Listing,
    MemoryForm,
    Mount,
    Namespace,
    PackMemory,
    PackVersion,
    Publication,
    Subscription,
)
from vault.providers.engines import EngineModel
from vault.store.contracts import subscribers_count
from vault.store.files import AdapterStatement, Item, Pack, file_read, item_digest
from vault.store.numbers import number_read, range_read
from vault.store.payments import payment_provider
from vault.store.rules import OFFICIAL_TRUST, Terms
from vault.store.selections import select_items, selection_open
from vault.store.selectors import file_open
from vault.store.subscriptions import LIVE, compare_ask
from vault.store.wordings import items_personalise
from vault.vocabulary import ContractState, MemoryType, PackState, PublicationState, QuotaPeriod, Source

PART = 200  # memories of one step
CLOSED = (ContractState.REVOKED, ContractState.ENDED)


@dataclass(frozen=True)
class Changes:
    """The differences between the installed memories and a version, by the memory's id in the pack.

    overridden: memories that the subscriber has reworded; they stay unchanged.
    """

    added: tuple[UUID, ...]
    changed: tuple[UUID, ...]
    removed: tuple[UUID, ...]
    overridden: frozenset[UUID] = frozenset()


@dataclass(frozen=True)
class PackAdapter:
    """The adapter in a pack's file, with its signed statement."""

    statement: AdapterStatement
    content: bytes = field(repr=False)


@dataclass(frozen=True)
class Target:
    """The version to install. number: empty if no version may stay installed. made_at: when the version was built."""

    number: str = ""
    made_at: datetime | None = None
    items: Sequence[Item] = field(default=(), repr=False)
    adapter: PackAdapter | None = None  # if all its memories are selected

    def digests(self) -> dict[UUID, str]:
        return {item.id: item_digest(item) for item in self.items}


NOTHING = Target()


@handler(Topic.PACK_INSTALL, permission=Permission.STORE_MANAGE)
def pack_install(run: JobRun) -> Callable[[], Step]:
    """Remove and add the next PART memories. done: memories of the version.

    Raises Conflict if no version may be installed. Writes: Cube …, PackMemory …, Subscription, AuditEntry …; in the
    publisher's tenant Contract, Publication, Listing, AuditEntry.
    """
    authorize(run.system, Permission.STORE_MANAGE)
    with acting(run.system):
        row = Subscription.objects.select_related("namespace").get(id=UUID(run.settings["subscription"]))
    if row.state in CLOSED:
        target = NOTHING
        _contract_end(row)
    else:
        _require_entitlement(row)
        target = find_target(run.system, row, run.settings["number"])
        _contract_note(run.system, row, target)
    made = _adapter_make(run.system, row, target.adapter)

    def write() -> Step:
        rows = Subscription.objects.select_related("namespace").select_for_update(of=("self",))
        locked = rows.get(id=row.id)
        if (locked.state in CLOSED) != (row.state in CLOSED) or bytes(locked.selection) != bytes(row.selection):
            return Step(state={"after": "a change"})
        if made is not None and target.adapter is not None:
            _adapter_install(run.system, locked, target.adapter, made)
        return _install_part(run, locked, target)

    return write


def _require_entitlement(row: Subscription) -> None:
    """Check the subscription with the payment provider, outside any transaction. Raises Conflict if the payment is
    missing."""
    terms = Terms(row.quota, QuotaPeriod(row.period), purposes=tuple(row.purposes), price=row.price)
    if not payment_provider().is_entitled(terms):
        raise Conflict("The payment that the publisher asks for is missing.")


def compare_versions(row: Subscription, target: Target) -> Changes:
    """Return the changes that an installation of `target` would make. Use inside `acting`."""
    wanted = target.digests()
    rows = list(PackMemory.objects.filter(tenant_id=row.tenant_id, subscription=row))
    present = {memory.key: memory.digest for memory in rows}
    return Changes(
        added=tuple(sorted(wanted.keys() - present.keys())),
        changed=tuple(sorted(key for key, digest in present.items() if wanted.get(key, digest) != digest)),
        removed=tuple(sorted(present.keys() - wanted.keys())),
        overridden=frozenset(memory.key for memory in rows if memory.is_overridden),
    )


def find_target(system: Actor, row: Subscription, number: str) -> Target:
    """Return the version with this number, or else the newest in the subscription's range, with the selected memories.

    Runs outside any transaction. Returns NOTHING if the installed version was withdrawn and the range has no other.
    Raises Conflict if no version may be installed; ProviderUnavailable; KeyUnavailable.
    """
    with acting(system):
        is_listed = Listing.objects.filter(id=row.publication_id, is_offered=True).exists()
    with acting(_publisher_actor(row)):
        offered = _installable_versions(row, is_listed)
        wanted = number or str(range_read(row.range).newest(map(number_read, offered)) or "")
        version = PackVersion.objects.defer(None).get(id=offered[wanted]) if wanted in offered else None
        if version is not None:
            file = file_read(file_open(version))
            items = items_personalise(version, file.items, row.tenant_id)
    if version is not None:
        selected = select_items(selection_open(row), version, items)
        return Target(wanted, file.manifest.created_at, selected, _find_adapter(file, selected))
    if number or row.state == ContractState.REQUESTED:
        raise Conflict("The publisher offers no version that the range of the subscription takes.")
    return NOTHING


def _find_adapter(file: Pack, selected: Sequence[Item]) -> PackAdapter | None:
    """Return the adapter of a file, if the subscriber gets every memory that it was trained on."""
    stated = file.manifest.adapter
    if stated is None or not set(stated.memories) <= {item.id for item in selected}:
        return None
    return PackAdapter(stated, file.adapter)


def _adapter_make(system: Actor, row: Subscription, adapter: PackAdapter | None) -> MadePayload | None:
    """Store the payload of an adapter for the subscriber, outside any transaction; None if its memories are not all
    installed yet, or it is there already.

    Raises BlobStoreUnavailable; KeyUnavailable.
    """
    if adapter is None or row.state in CLOSED:
        return None
    stated = adapter.statement
    with acting(system):
        parents = _find_parents(row, stated)
        installed = MemoryForm.objects.filter(tenant_id=row.tenant_id, pack=row.name, pack_digest=stated.digest)
        if parents is None or installed.exists():
            return None
        texts = [view.words.content for view in cubes_view(actor=system, cube_ids=[cube.id for cube in parents])]
    pairs = json.dumps([asdict(pair) for pair in make_pairs(texts)], ensure_ascii=False)
    form_id = uuid7()
    sealed = payload_seal(row.tenant_id, form_id, [], payload_encode(pairs, adapter.content))
    payload_store(row.tenant_id, form_id, sealed)
    return MadePayload(
        form_id,
        EngineModel(stated.model, stated.fingerprint, 0, 0),
        sum(cube.token_count for cube in parents),
        0.0,
        sealed,
        report=dict(stated.report),
        pack=row.name,
        pack_digest=stated.digest,
    )


def _find_parents(row: Subscription, stated: AdapterStatement) -> list[Cube] | None:
    """Return the installed memories that an adapter was trained on, in their order; None if one is missing or was
    reworded. Use inside `acting`."""
    rows = PackMemory.objects.filter(tenant_id=row.tenant_id, subscription=row, key__in=stated.memories)
    ids = dict(rows.filter(is_overridden=False).values_list("key", "cube_id"))
    cubes = Cube.objects.filter(tenant_id=row.tenant_id, id__in=ids.values()).select_related("namespace").in_bulk()
    found = [cubes.get(ids.get(key)) for key in stated.memories]
    present = [cube for cube in found if cube is not None]
    return present if len(present) == len(found) else None


def _adapter_install(system: Actor, row: Subscription, adapter: PackAdapter, made: MadePayload) -> None:
    """Store the adapter of a pack, in the place of an earlier one. It waits for its approval."""
    parents = _find_parents(row, adapter.statement)
    if parents is None:
        return
    former = MemoryForm.objects.filter(tenant_id=row.tenant_id, pack=row.name).values("cube_id")
    cubes = Cube.objects.filter(tenant_id=row.tenant_id, id__in=former).select_related("namespace")
    cubes_erase(actor=system, cubes=list(cubes.order_by("id").select_for_update(of=("self",))))
    form_insert(system, MemoryType.PARAMETER, adapter.statement.title, parents, made, None)


def _installable_versions(row: Subscription, is_listed: bool) -> dict[str, UUID]:
    """Return number → id of the versions that may be installed. Of an unlisted publication, only the installed version
    may."""
    publication = Publication.objects.get(tenant_id=row.publisher_id, id=row.publication_id)
    if publication.state == PublicationState.BANNED:
        return {}
    versions = PackVersion.objects.filter(pack_id=publication.pack_id, published_at__isnull=False)
    numbers = versions.exclude(state=PackState.YANKED).values_list("number", "id")
    return {number: version_id for number, version_id in numbers if is_listed or number == row.number}


def _publisher_actor(row: Subscription) -> Actor:
    return system_actor(tenant_id=row.publisher_id, request_id=f"subscription-{row.id}")


def _contract_end(row: Subscription) -> None:
    """End the publisher's contract, if it is active. Writes: Contract, Publication, Listing, AuditEntry?."""
    publisher = _publisher_actor(row)
    with acting(publisher):
        contract = Contract.objects.select_for_update().filter(subscription_id=row.id).first()
        if contract is None or contract.state != ContractState.ACTIVE:
            return
        contract.state = ContractState.ENDED
        contract.save(update_fields=["state"])
        subscribers_count(actor=publisher, publication_id=contract.publication_id)
        record(actor=publisher, verb=Verb.CONTRACT_ENDED, object_type="contract", object_ids=[contract.id])


def _contract_note(system: Actor, row: Subscription, target: Target) -> None:
    """Update the publisher's contract if it differs from the subscription. Raises Conflict if it was revoked.

    Writes: Contract, Publication, Listing, AuditEntry.
    """
    with acting(system):
        subscriber = Tenant.objects.get(id=row.tenant_id).name
    publisher = _publisher_actor(row)
    with acting(publisher):
        contract = Contract.objects.select_for_update().filter(subscription_id=row.id).first()
        if contract is not None and contract.state != ContractState.ACTIVE:
            raise Conflict(f"The contract is {contract.state}.")
        if contract is not None and contract.number == target.number:
            return
        verb = Verb.CONTRACT_CREATED if contract is None else Verb.CONTRACT_CHANGED
        contract = contract or _make_contract(row, subscriber)
        contract.number = target.number
        contract.save()
        subscribers_count(actor=publisher, publication_id=row.publication_id)
        detail = {"version": target.number}
        record(actor=publisher, verb=verb, object_type="contract", object_ids=[contract.id], detail=detail)


def _make_contract(row: Subscription, subscriber: str) -> Contract:
    agreed = ("quota", "period", "purposes", "price", "valid_to", "may_export")
    return Contract(
        id=uuid7(),
        tenant_id=row.publisher_id,
        publication_id=row.publication_id,
        subscription_id=row.id,
        subscriber_id=row.tenant_id,
        subscriber=subscriber,
        state=ContractState.ACTIVE,
        **{name: getattr(row, name) for name in agreed},
    )


def _install_part(run: JobRun, row: Subscription, target: Target) -> Step:
    changes = compare_versions(row, target)
    staying = changes.overridden if row.state in LIVE else frozenset()
    leaving = [key for key in (*changes.removed, *changes.changed) if key not in staying][:PART]
    if leaving:
        _remove_memories(run.system, row, leaving)
        return Step(state={"removed": str(leaving[-1])})
    coming = set(changes.added[:PART])
    if coming:
        _add_memories(run.system, row, target, [item for item in target.items if item.id in coming])
        return Step(state={"added": str(max(coming))}, done=run.done + len(coming), total=len(target.items))
    _finish_installation(run.system, row, target, changes)
    return Step(done=len(target.items), total=len(target.items), result={"version": target.number})


def _remove_memories(system: Actor, row: Subscription, keys: Sequence[UUID]) -> None:
    rows = PackMemory.objects.filter(tenant_id=row.tenant_id, subscription=row, key__in=keys)
    cube_ids = list(rows.values_list("cube_id", flat=True))
    cubes = Cube.objects.filter(tenant_id=row.tenant_id, id__in=cube_ids).select_related("namespace")
    locked = list(cubes.order_by("id").select_for_update(of=("self",)))
    rows.delete()
    cubes_erase(actor=system, cubes=locked)


def _add_memories(system: Actor, row: Subscription, target: Target, items: Sequence[Item]) -> None:
    added = cubes_add(actor=system, drafts=[_draft(row, target, item) for item in items])
    PackMemory.objects.bulk_create(
        PackMemory(
            id=uuid7(),
            tenant_id=row.tenant_id,
            subscription=row,
            cube_id=memory.cube.id,
            key=item.id,
            digest=item_digest(item),
        )
        for memory, item in zip(added, items, strict=True)
    )


def _draft(row: Subscription, target: Target, item: Item) -> CubeDraft:
    """Return the draft of a pack's memory, which names the pack and is readable until the contract ends.

    It has the times of the pack: one without any was said when the version was built.
    """
    return CubeDraft(
        content=item.content,
        title=item.title,
        namespace=row.namespace.path,
        tags=item.tags,
        metadata={"pack": row.name},
        event_time=item.event_time,
        said_at=item.said_at or (None if item.event_time else target.made_at),
        valid_from=item.valid_from,
        valid_to=item.valid_to,
        expires_at=row.valid_to,
        importance=item.importance,
        semantic_type=item.semantic_type,
        source=Source.PACK,
        trust=OFFICIAL_TRUST if row.is_trusted else PACK_TRUST,
        reader="pack",
        allow_duplicates=True,
    )


def _finish_installation(system: Actor, row: Subscription, target: Target, changes: Changes) -> None:
    wanted = target.digests()
    for memory in PackMemory.objects.filter(tenant_id=row.tenant_id, subscription=row, key__in=changes.changed):
        memory.digest = wanted[memory.key]  # of the text that the override stands for from now on
        memory.save(update_fields=["digest"])
    row.number, row.available = target.number, ""
    if row.state == ContractState.REQUESTED:
        row.state = ContractState.ACTIVE
    row.save(update_fields=["number", "available", "state"])
    if row.state in CLOSED:
        _close_namespace(row)
    elif row.is_trusted:
        compare_ask(actor=system, subscription=row)
    detail = {"version": target.number}
    record(
        actor=system,
        verb=Verb.SUBSCRIPTION_CHANGED,
        object_type="subscription",
        object_ids=[row.id],
        detail=detail,
    )


def _close_namespace(row: Subscription) -> None:
    """End the namespace and unmount it, unless another live subscription uses it."""
    others = Subscription.objects.filter(tenant_id=row.tenant_id, namespace_id=row.namespace_id, state__in=LIVE)
    if not others.exists():
        Mount.objects.filter(tenant_id=row.tenant_id, namespace_id=row.namespace_id).delete()
        Namespace.objects.filter(id=row.namespace_id).update(ended_at=Now(), is_mounted=False)
