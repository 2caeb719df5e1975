"""Items as drafts and changes of memories, and the memories that earlier imports made of them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import Case, F, Q, Value, When

from governance.actor import Actor
from governance.keys.services import TokenMaker, token_maker
from governance.privacy.detection import detector
from governance.privacy.pii.detector import DetectorFailed
from vault.content.drafts import OWN_TRUST, PACK_TRUST, CubeChanges, CubeDraft, SourceRef
from vault.cubes.pack_reads import find_pack_texts
from vault.exchange.items import HELD_THERE, ORIGIN, ORIGIN_FORMAT, Item, ItemVersion
from vault.index import marks
from vault.models import ArchivedPosting, Cube, CubeVersion, Posting, Subscription
from vault.namespaces.management import subtree
from vault.screening.texts import Texts, find_places
from vault.vocabulary import ImportFormat, PiiField, Source, State

ALONE = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
READER = "import"
SYNC_FORMAT = "sync"  # of memories that a sync brought, beside the formats of files
WITHOUT_IDS = (ImportFormat.CSV, ImportFormat.MARKDOWN, ImportFormat.MEM0)  # there the text says what is the same
FULL_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}/[a-z0-9][a-z0-9-]{0,59}")  # of a pack
LETTERS = str.maketrans("0123456789", "ghijklmnop")
UNINDEXED = (State.MERGED, State.EXPIRED)
CHANGED = tuple(field.name for field in fields(ItemVersion) if field.name != "reason")


@dataclass(frozen=True)
class Present:
    """A memory of an earlier import. digest: the keyed hash of its text; is_deleted: it waits in the trash."""

    id: UUID
    version: int
    digest: bytes
    is_deleted: bool = False


def imports_await(actor: Actor) -> None:
    """Wait for other transactions that store imported memories of this member, until they are visible here.

    A file or a call of a sync that comes again while it is still being stored finds its memories then.
    """
    with connection.cursor() as cursor:
        cursor.execute(ALONE, [f"import {actor.tenant_id} {actor.member_id}"])


def imported_find(
    actor: Actor, ids: Iterable[str], *, form: str, namespace: str | None = None, with_hidden: bool = False
) -> dict[str, Present]:
    """The memories of the member's own earlier imports that the actor may read, by the id that they had, and those that
    a file names by their own id, as an export from here does. Five queries or six.

    form: an ImportFormat, or SYNC_FORMAT; imports of other formats are other ids, and a sync names none of here.
    namespace: only those there and below. with_hidden: those in the trash, in quarantine and expired, too.
    """
    maker, ids = token_maker(actor.tenant_id), list(ids)
    by_mark = {
        marks.value_mark(maker, f"metadata.{ORIGIN}", text): item_id
        for item_id in ids
        for text in (item_id, _origin_token(maker, item_id))
    }
    named: dict[UUID, str] = {}
    for index in (Posting, ArchivedPosting):
        rows = index.objects.filter(tenant_id=actor.tenant_id, term__any_of=list(by_mark))
        named |= {cube_id: by_mark[term] for term, cube_id in rows.values_list("term", "cube_id")}
    named |= _find_unindexed(actor, by_mark)
    found = _find_stored(actor, named, by_mark, marks.value_mark(maker, f"metadata.{ORIGIN_FORMAT}", form))
    reached = Cube.objects.in_reach_of(actor) if with_hidden else Cube.objects.visible_to(actor)
    if namespace:
        reached = reached.filter(namespace_id__in=subtree(actor, namespace).values("id"))
    own = {} if form == SYNC_FORMAT else {cube_id: item_id for item_id in ids if (cube_id := _read_id(item_id))}
    # An import counts before the memory itself, the newest one, and a deleted one only where there is no other.
    order = (F("deleted_at").desc(nulls_last=True), Case(When(id__any_of=list(own), then=0), default=1), "id")
    found = own | found
    cubes = reached.filter(id__any_of=list(found)).order_by(*order)
    return {
        found[cube_id]: Present(cube_id, version, bytes(digest), deleted_at is not None)
        for cube_id, version, digest, deleted_at in cubes.values_list("id", "version", "content_hash", "deleted_at")
    }


def _read_id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _find_stored(
    actor: Actor, named: Mapping[UUID, str], by_mark: Mapping[int, str], format_mark: int
) -> dict[UUID, str]:
    """Those of `named` that an import or sync of the member stored in this format, by what their first version says.

    Later metadata and that of other memories is what a client wrote. A removed first version leaves what `named` says.
    """
    by_member = Q(owner_id=actor.member_id) | Q(principal_kind=actor.principal_kind, principal_id=actor.principal_id)
    rows = CubeVersion.objects.filter(
        by_member,
        Q(terms__contains=[format_mark]) | Q(sealed=b""),
        tenant_id=actor.tenant_id,
        number=1,
        cube_id__any_of=list(named),
        cube__reader=READER,
        cube__source__in=(Source.IMPORT, Source.PACK),
    )
    found: dict[UUID, str] = {}
    for cube_id, terms in rows.values_list("cube_id", "terms"):
        known = by_mark.keys() & set(terms)
        if known or not terms:
            found[cube_id] = by_mark[known.pop()] if known else named[cube_id]
    return found


def _find_unindexed(actor: Actor, by_mark: Mapping[int, str]) -> dict[UUID, str]:
    """The ids that memories name which no index has: merged and deleted ones, and those in quarantine."""
    hidden = Q(cube__state__in=UNINDEXED) | Q(cube__is_quarantined=True) | Q(cube__deleted_at__isnull=False)
    wanted = Value(list(by_mark), CubeVersion._meta.get_field("terms"))  # one parameter
    rows = CubeVersion.objects.filter(hidden, tenant_id=actor.tenant_id, terms__overlap=wanted)
    pairs = ((cube_id, by_mark.keys() & set(terms)) for cube_id, terms in rows.values_list("cube_id", "terms"))
    return {cube_id: by_mark[term] for cube_id, known in pairs for term in known}


def items_by_origin(items: Sequence[Item]) -> Iterator[list[Item]]:
    """Group items so that each follows the items it was made from; items in a cycle form one group."""
    waiting = list(items)
    while waiting:
        open_ids = {item.id for item in waiting}
        ready = [item for item in waiting if not any(origin.id in open_ids for origin in item.made_from)] or waiting
        yield ready
        taken = {item.id for item in ready}
        waiting = [item for item in waiting if item.id not in taken]


def item_draft(
    actor: Actor, item: Item, *, form: str, namespace: str | None, persona: str | None, present: Mapping[str, Present]
) -> CubeDraft:
    """The first version of an item. form: an ImportFormat, or SYNC_FORMAT. present: memories here, by item id."""
    first = item.versions[0]
    origins = [(present[origin.id], origin) for origin in item.made_from if origin.id in present]
    return CubeDraft(
        content=first.content,
        title=first.title,
        namespace=namespace or item.namespace or None,
        persona=persona,
        subject=item.subject,
        session_id=item.session_id,
        task_id=item.task_id,
        message_id=item.message_id,
        speaker=item.speaker,
        tags=first.tags,
        metadata={**first.metadata, **note_hold(item), **origin_metadata(actor, item.id, form)},
        event_time=first.event_time,
        said_at=item.said_at,
        valid_from=first.valid_from,
        valid_to=first.valid_to,
        expires_at=item.expires_at,
        layer=item.layer,
        sensitivity=first.sensitivity,
        importance=first.importance,
        semantic_type=first.semantic_type,
        is_dialogue_only=item.dialogue_only,
        source=Source.PACK if item_pack(item) else Source.IMPORT,
        trust=PACK_TRUST if item_pack(item) else OWN_TRUST,
        reader=READER,
        allow_duplicates=form not in WITHOUT_IDS,
        sources=tuple(SourceRef(here.id, min(origin.version, here.version), origin.kind) for here, origin in origins),
    )


def item_pack(item: Item) -> str:
    """Return the full name of the pack that a memory came from, as `acme/herons`; empty if it came from none."""
    names = (str(version.metadata.get("pack", "")) for version in reversed(item.versions))
    return next((name for name in names if FULL_NAME.fullmatch(name)), "")


class ItemDigest(NamedTuple):
    """An item without its words. hashes: of the text of each version, the present one last; pack: as `item_pack`."""

    id: str
    hashes: tuple[bytes, ...]
    pack: str = ""
    expires_at: datetime | None = None


def item_digest(item: Item, maker: TokenMaker) -> ItemDigest:
    return ItemDigest(
        item.id, tuple(maker.hash(version.content) for version in item.versions), item_pack(item), item.expires_at
    )


def items_of_packs(actor: Actor, items: Sequence[ItemDigest]) -> set[str]:
    """Return the ids of items that the organisation has, or had, under the contract of a pack: they are not imported.

    An item says which pack it came from; one that does not has the text of an installed memory. Two queries.
    """
    hashes = {digest: item.id for item in items for digest in item.hashes}
    copies = find_pack_texts(actor, hashes)
    rows = Subscription.objects.filter(tenant_id=actor.tenant_id, name__in={item.pack for item in items} - {""})
    names = set(rows.values_list("name", flat=True))
    return {hashes[copy] for copy in copies} | {item.id for item in items if item.pack in names}


def item_changes(version: ItemVersion, origin: Mapping[str, Any]) -> CubeChanges:
    """A later version of an item. origin: of the metadata, what tells where the memory came from."""
    values = {name: getattr(version, name) for name in CHANGED}
    return CubeChanges(**{**values, "metadata": {**version.metadata, **origin}})


def note_hold(item: Item) -> dict[str, bool]:
    """The note that a hold kept the memory there: here its own holds do."""
    return {HELD_THERE: True} if item.held else {}


def origin_metadata(actor: Actor, item_id: str, form: str) -> dict[str, str]:
    """The origin of a memory. An id that looks personal is a keyed token, which no screening changes, so
    that a repeated import finds it; so is one that could not be checked, which the screening reports.
    """
    try:
        is_personal = bool(find_places(detector(), Texts("", metadata={ORIGIN: item_id}), [PiiField.METADATA]))
    except DetectorFailed:
        is_personal = True
    origin = _origin_token(token_maker(actor.tenant_id), item_id) if is_personal else item_id
    return {ORIGIN: origin, ORIGIN_FORMAT: form}


def _origin_token(maker: TokenMaker, item_id: str) -> str:
    """16 letters, since digits can look personal."""
    return f"{maker.token('origin', item_id) % 2**64:016x}".translate(LETTERS)
