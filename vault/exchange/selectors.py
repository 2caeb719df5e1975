"""MemDumper: the memories that an export job noted, as a file that is written while it is downloaded."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from uuid import UUID

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting, database_now
from governance.errors import FieldError, Invalid, NotFound
from governance.jobs.selectors import JobView, job_get, job_view, jobs_readable
from governance.keys.envelopes import envelope_write, exchange_key
from governance.keys.signing_keys import SigningKey, export_signing_key
from governance.replica import reading
from governance.tenants.principals import actor_now
from governance.vocabulary import Permission, Topic
from vault.content.blobs import with_blobs
from vault.exchange.cube_items import cube_items
from vault.exchange.item_drafts import item_pack
from vault.exchange.items import FORMAT, Item, item_line
from vault.exchange.markdown import write_section
from vault.exchange.pack_export import pack_blocks
from vault.listing.actions import export_check
from vault.models import ActionItem

BLOCK = 500  # memories of one transaction
PART_MEMORIES = 10_000  # of a part of an export, as of a pack
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
    *, actor: Actor, job_id: UUID, form: ExportForm, recipient: str | None = None, part: int | None = None
) -> ExchangeFile:
    """The file of a finished export, with the versions and lineage that the actor may read when a block is written.

    part: of the memory packs or JSON Lines, PART_MEMORIES in each, from 1; None: all lines, or the first pack.
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
        return ExchangeFile(f"{name}.sealed", _encrypt_blocks(blocks, recipient))
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


def _encrypt_blocks(blocks: Iterator[bytes], recipient: str) -> Iterator[bytes]:
    """Encrypt the blocks. Raises Invalid."""
    try:
        return envelope_write(blocks, bytes.fromhex(recipient))
    except ValueError as error:
        fault = FieldError("recipient", "write an X25519 public key as 64 hexadecimal digits")
        raise Invalid(errors=[fault]) from error


def _form_blocks(actor: Actor, view: JobView, form: ExportForm, part: int | None) -> Iterator[bytes]:
    """Raises Invalid for a part that the export has not."""
    now = database_now()
    if form is ExportForm.MEMPACK:
        return pack_blocks(actor, view, 1 if part is None else part, now)
    span = _find_span(actor, view, part)
    return _write_blocks(actor, view.id, form, _write_heading(form, view, now, part), span)


def _find_span(actor: Actor, view: JobView, part: int | None) -> tuple[UUID | None, int | None]:
    """The memory behind which a part begins, and how many it has; None for the start, and for all. Raises Invalid."""
    if part is None:
        return None, None
    count = max(1, -(-view.done // PART_MEMORIES))
    if not 1 <= part <= count:
        raise Invalid(errors=[FieldError("part", f"from 1 to {count}")])
    start = (part - 1) * PART_MEMORIES
    noted = ActionItem.objects.filter(tenant_id=actor.tenant_id, job_id=view.id).order_by("cube_id")
    before = noted.values_list("cube_id", flat=True)[start - 1 : start] if start else []
    return next(iter(before), None), PART_MEMORIES


def _write_heading(form: ExportForm, view: JobView, now: datetime, part: int | None) -> bytes:
    if form is ExportForm.MARKDOWN:
        return b""
    stated = {"format": FORMAT, "count": view.done, "exported_at": now.astimezone(UTC).isoformat()}
    return json.dumps(stated if part is None else {**stated, "part": part}).encode() + b"\n"


def _write_blocks(
    actor: Actor, job_id: UUID, form: ExportForm, started: bytes, span: tuple[UUID | None, int | None]
) -> Iterator[bytes]:
    """span: as `_find_span` finds it."""
    last, left = span
    heading = started  # sent with the first block: what fails there is still told by a status
    while True:
        actor = actor_now(actor)  # a download may take longer than the right to it lasts
        authorize(actor, Permission.MEMORY_READ)
        size = BLOCK if left is None else min(BLOCK, left)
        named, items = _read_block(actor, job_id, last, size)
        write = item_line if form is ExportForm.JSONL else _write_markdown
        yield heading + b"".join(write(item) + b"\n" for item in items)
        left = None if left is None else left - len(named)
        if len(named) < size or left == 0:
            return
        last, heading = named[-1], b""


@with_blobs
def _read_block(actor: Actor, job_id: UUID, last: UUID | None, size: int) -> tuple[list[UUID], list[Item]]:
    """The next memories that the job noted, and those of them that the actor may read. Writes: AuditEntry …."""
    with reading(actor):
        noted = ActionItem.objects.filter(tenant_id=actor.tenant_id, job_id=job_id).order_by("cube_id")
        noted = noted if last is None else noted.filter(cube_id__gt=last)
        named = list(noted.values_list("cube_id", flat=True)[:size])
        return named, [item for _, item in cube_items(actor, named)]


def _write_markdown(item: Item) -> bytes:
    """A section of the present version, as the importer of Markdown reads it; it names the pack that it came from."""
    version = item.versions[-1]
    first = version.content.strip().splitlines()[0]
    title = " ".join((version.title or first[:80]).split())
    return write_section(title, version.content.strip(), item_pack(item)).encode()
