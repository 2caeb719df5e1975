"""The memories of a namespace that another installation may read: their list, and the contents that it requests."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Now

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import FieldError, Invalid, NotFound, PiiUnavailable
from governance.policies.selectors import check_publishing
from governance.privacy.detection import detector
from governance.privacy.pii.detector import DetectorFailed
from governance.vocabulary import Permission, PiiKind, Verb
from vault.content.blobs import with_blobs
from vault.cubes.retention import facts_of
from vault.exchange.cube_items import cube_items
from vault.exchange.items import Item
from vault.exchange.sync.wire import GONE, LISTED, MOST_AT_ONCE, Listed, Listing, Sent, make_sent
from vault.models import Cube, Namespace
from vault.models.cube import CubeQuerySet
from vault.screening.screen import EVERYWHERE
from vault.screening.texts import Texts, find_places
from vault.store.scan import LEAVING
from vault.vocabulary import MemoryType, Source

NOT_SHARED = "not_shared"  # it lies elsewhere now, is confidential, or came with a pack
MAY_LEAVE = Q(type=MemoryType.PLAINTEXT, sensitivity__in=LEAVING) & ~Q(source=Source.PACK)


def memories_list_for_peer(*, actor: Actor, namespace: str, after: UUID | None = None) -> Listing:
    """The next LISTED memories of a namespace that may leave, by id: none that came with a pack, or is confidential.

    Raises Forbidden; NotFound where the actor reads no such namespace. Writes: AuditEntry.
    """
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        rows = select_sendable(actor, namespace)
        page = rows.order_by("id") if after is None else rows.filter(id__gt=after).order_by("id")
        found = list(page.values_list("id", "version")[: LISTED + 1])
        memories = tuple(Listed(cube_id, version) for cube_id, version in found[:LISTED])
        record(
            actor=actor, verb=Verb.MEMORY_LISTED, object_type="memory", object_ids=[memory.id for memory in memories]
        )
        return Listing(rows.count(), memories, len(found) <= LISTED)


@with_blobs
def memories_open_for_peer(*, actor: Actor, namespace: str, known: Mapping[UUID, int]) -> list[Sent]:
    """The memories with these ids, in their order, each with the versions behind the `known` one.

    One that the actor may not read, and one that was deleted, is GONE. What a sharing policy keeps from publishing, and
    what holds a secret, stays. Raises Forbidden; NotFound; Invalid for more than MOST_AT_ONCE; PiiUnavailable.
    Writes: AuditEntry ….
    """
    authorize(actor, Permission.MEMORY_READ)
    if len(known) > MOST_AT_ONCE:
        raise Invalid(errors=[FieldError("memories", f"at most {MOST_AT_ONCE} of one call")])
    with acting(actor):
        allowed = set(select_sendable(actor, namespace).filter(id__in=known).values_list("id", flat=True))
        visible = set(Cube.objects.visible_to(actor).filter(id__in=known).values_list("id", flat=True))
        items = {cube.id: (cube, item) for cube, item in cube_items(actor, sorted(allowed), known)}
        return [
            _make_sent_memory(actor, *items[memory_id])
            if memory_id in items
            else Sent(memory_id, stays=NOT_SHARED if memory_id in visible else GONE)
            for memory_id in known
        ]


def select_sendable(actor: Actor, path: str) -> CubeQuerySet:
    """The memories of a namespace that the actor may read and that may leave. Use inside `acting`.

    Raises NotFound.
    """
    namespace = Namespace.objects.visible_to(actor).filter(path=path).first()
    if namespace is None:
        raise NotFound("There is no such namespace, or you may not read it.")
    return Cube.objects.visible_to(actor).filter(MAY_LEAVE, namespace=namespace)


def deleted_ids(actor: Actor, cube_ids: Sequence[UUID]) -> set[UUID]:
    """The ids that were deleted, purged or have expired, without memories that the actor may not read. One query."""
    there = Cube.objects.filter(tenant_id=actor.tenant_id, id__in=cube_ids, deleted_at=None)
    there = there.filter(Q(expires_at=None) | Q(expires_at__gt=Now()))
    return set(cube_ids) - set(there.values_list("id", flat=True))


def _make_sent_memory(actor: Actor, cube: Cube, item: Item) -> Sent:
    if not check_publishing(actor=actor, facts=facts_of(cube)).allowed:
        return Sent(cube.id, cube.version, stays="policy")
    if any(_has_secret(item, number) for number in range(len(item.versions))):
        return Sent(cube.id, cube.version, stays="secret")
    return make_sent(cube.id, cube.version, item)


def _has_secret(item: Item, number: int) -> bool:
    """Raises PiiUnavailable."""
    version = item.versions[number]
    texts = Texts(version.content, version.title, version.metadata, version.tags, item.speaker)
    try:
        places = find_places(detector(), texts, EVERYWHERE)
    except DetectorFailed as failure:
        raise PiiUnavailable("A memory could not be checked for secrets.") from failure
    return any(place.span.kind is PiiKind.SECRET for place in places)
