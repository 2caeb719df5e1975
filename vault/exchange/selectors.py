"""MemDumper: the memories that an export job noted, as a file that is written while it is downloaded."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from uuid import UUID

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting, database_now
from governance.errors import FieldError, Invalid, NotFound
from governance.jobs.selectors import JobView, job_get, job_view, jobs_readable
from governance.keys.envelopes import envelope_write, exchange_key
from governance.keys.signing import SigningKey, export_signing_key
from governance.privacy.services import subject_view
from governance.tenants.principals import actor_now
from governance.vocabulary import Permission, Topic, Verb
from vault.cubes.blobs import with_blobs
from vault.cubes.selectors import VersionView, versions_view
from vault.cubes.versions import versions_open_to
from vault.exchange.items import FORMAT, Item, ItemVersion, Origin, item_line
from vault.exchange.pack_export import pack_blocks
from vault.listing.actions import export_check
from vault.models import ActionItem, Cube, CubeSource
from vault.vocabulary import NamespaceKind, SemanticType, Sensitivity, SourceKind

PART = 500  # memories of one transaction
RECENT = 20  # jobs of the page
KINDS = (Topic.MEMORIES_EXPORT, Topic.MEMORIES_IMPORT)


class ExportForm(StrEnum):
    JSONL = "jsonl"
    MARKDOWN = "markdown"
    MEMPACK = "mempack"


SUFFIXES = {ExportForm.JSONL: "jsonl", ExportForm.MARKDOWN: "md", ExportForm.MEMPACK: "mempack"}


@dataclass(frozen=True)
class ExchangeFile:
    """The name of a file, and its content block by block."""

    name: str
    blocks: Iterator[bytes]


def exchange_public_key(*, actor: Actor) -> str:
    """The X25519 key of the actor's tenant, in hex: whoever exports for the tenant encrypts to it.

    Raises Forbidden; KeyUnavailable.
    """
    authorize(actor, Permission.MEMORY_READ)
    return exchange_key(actor.tenant_id).public_key().public_bytes_raw().hex()


def exchange_file(
    *, actor: Actor, job_id: UUID, form: ExportForm, recipient: str | None = None, part: int = 1
) -> ExchangeFile:
    """The file of a finished export, with the versions and lineage that the actor may read when a block is written.

    part: of the memory packs, from 1.
    recipient: an X25519 public key in hex, for a file that only its owner can open; None for a readable file.

    Raises Invalid; NotFound; Forbidden, also at a block once the key, membership or role has ended; Conflict while it
    runs; TooLarge.
    Writes: AuditEntry …, for each block.
    """
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        view = job_get(actor=actor, job_id=job_id)
        if view.kind != Topic.MEMORIES_EXPORT:
            raise NotFound
        export_check(view)
        blocks, name = _form_blocks(actor, view, form, part), f"memories-{job_id}.{SUFFIXES[form]}"
    if recipient is not None:
        return ExchangeFile(f"{name}.sealed", _sealed(blocks, recipient))
    return ExchangeFile(name, blocks)


def exchange_jobs(*, actor: Actor) -> list[JobView]:
    """The newest exports and imports that the actor may see. Raises Forbidden."""
    authorize(actor, Permission.JOB_READ)
    with acting(actor):
        rows = jobs_readable(actor).filter(kind__in=KINDS).order_by("-id")[:RECENT]
        return [job_view(job) for job in rows]


def export_key(*, actor: Actor) -> SigningKey:
    """The key that signs the memory packs that the actor's tenant exports. Raises Forbidden; KeyUnavailable."""
    authorize(actor, Permission.MEMORY_READ)
    return export_signing_key(actor.tenant_id)


def _sealed(blocks: Iterator[bytes], recipient: str) -> Iterator[bytes]:
    """Raises Invalid."""
    try:
        return envelope_write(blocks, bytes.fromhex(recipient))
    except ValueError as error:
        fault = FieldError("recipient", "write an X25519 public key as 64 hexadecimal digits")
        raise Invalid(errors=[fault]) from error


def _form_blocks(actor: Actor, view: JobView, form: ExportForm, part: int) -> Iterator[bytes]:
    now = database_now()
    if form is ExportForm.MEMPACK:
        return pack_blocks(actor, view, part, now)
    return _blocks(actor, view.id, form, _heading(form, view, now))


def _heading(form: ExportForm, view: JobView, now: datetime) -> bytes:
    if form is ExportForm.MARKDOWN:
        return b""
    stated = {"format": FORMAT, "count": view.done, "exported_at": now.astimezone(UTC).isoformat()}
    return json.dumps(stated).encode() + b"\n"


def _blocks(actor: Actor, job_id: UUID, form: ExportForm, started: bytes) -> Iterator[bytes]:
    last: UUID | None = None
    heading = started  # sent with the first part: what fails there is still told by a status
    while True:
        actor = actor_now(actor)  # a download may take longer than the right to it lasts
        authorize(actor, Permission.MEMORY_READ)
        named, items = _part(actor, job_id, last)
        write = item_line if form is ExportForm.JSONL else _markdown
        yield heading + b"".join(write(item) + b"\n" for item in items)
        if len(named) < PART:
            return
        last, heading = named[-1], b""


@with_blobs
def _part(actor: Actor, job_id: UUID, last: UUID | None) -> tuple[list[UUID], list[Item]]:
    """The next memories that the job noted, and those of them that the actor may read. Writes: AuditEntry …."""
    with acting(actor):
        noted = ActionItem.objects.filter(tenant_id=actor.tenant_id, job_id=job_id).order_by("cube_id")
        noted = noted if last is None else noted.filter(cube_id__gt=last)
        named = list(noted.values_list("cube_id", flat=True)[:PART])
        rows = Cube.objects.visible_to(actor).filter(id__in=named)
        cubes = list(rows.select_related("namespace", "subject").order_by("id"))
        ids = [cube.id for cube in cubes]
        versions = versions_open_to(actor).filter(cube_id__in=ids).order_by("cube_id", "number")
        views: dict[UUID, list[VersionView]] = defaultdict(list)
        for view in versions_view(actor, list(versions.select_related("namespace"))):
            views[view.row.cube_id].append(view)
        sources = list(CubeSource.objects.filter(cube_id__in=ids).order_by("id"))
        readable = _readable(actor, sources)
        origins: dict[UUID, list[CubeSource]] = defaultdict(list)
        for one in sources:
            if one.source_id in readable:
                origins[one.cube_id].append(one)
        record(actor=actor, verb=Verb.MEMORY_EXPORTED, object_type="memory", object_ids=ids)
        made = (_item(cube, views[cube.id], origins[cube.id]) for cube in cubes)
        return named, [item for item in made if item is not None]


def _readable(actor: Actor, sources: Sequence[CubeSource]) -> set[UUID]:
    ids = {one.source_id for one in sources}
    return set(Cube.objects.visible_to(actor).filter(id__in=ids).values_list("id", flat=True)) if ids else set()


def _item(cube: Cube, views: Sequence[VersionView], sources: Sequence[CubeSource]) -> Item | None:
    """views, sources: of this memory, oldest first. None where the words of every version are gone."""
    own = [view for view in views if view.words.content]
    if not own:
        return None
    words = own[-1].words
    return Item(
        id=str(cube.id),
        versions=tuple(_version(view) for view in own),
        namespace="" if cube.namespace.kind == NamespaceKind.PRIVATE else cube.namespace.path,
        subject=subject_view(cube.subject).reference or None if cube.subject else None,
        speaker=words.speaker,
        session_id=words.session_id,
        message_id=words.message_id,
        task_id=words.task_id,
        made_from=tuple(Origin(str(one.source_id), one.version, SourceKind(one.kind)) for one in sources),
    )


def _version(view: VersionView) -> ItemVersion:
    row, words = view.row, view.words
    return ItemVersion(
        content=words.content,
        title=words.title,
        tags=tuple(row.tags),
        metadata=words.metadata,
        semantic_type=SemanticType(row.semantic_type),
        sensitivity=Sensitivity(row.sensitivity),
        importance=row.importance,
        event_time=row.event_time,
        valid_from=row.valid_from,
        valid_to=row.valid_to,
        reason=row.reason,
    )


def _markdown(item: Item) -> bytes:
    """A section of the present version, as the importer of Markdown reads it."""
    version = item.versions[-1]
    first = version.content.strip().splitlines()[0]
    title = " ".join((version.title or first[:80]).split())
    return f"## {title}\n\n{version.content.strip()}\n".encode()
