"""An export as signed memory packs: each memory passes the rules for what may leave, as in a pack of the store."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from uuid import UUID

from django.db.models import F, Func, IntegerField, Sum

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.errors import Conflict, FieldError, Invalid, TooLarge
from governance.jobs.selectors import JobView
from governance.keys.signing_keys import export_signing_key
from governance.models import Tenant
from governance.tenants.principals import actor_now
from governance.vocabulary import Permission, Verb
from vault.content.blobs import with_blobs
from vault.cubes.selectors import cubes_read
from vault.models import ActionItem, Cube, CubeVersion
from vault.store.files import LARGEST_MEMORIES, MOST_MEMORIES, Item, PackWriter
from vault.store.scan import LeavingRules, memories_scan, packs_drop
from vault.vocabulary import FindingRule, SubjectRule, Treatment

PART = 100  # memories of one transaction
LONGEST_NUMBER = 6
RULES = LeavingRules(FindingRule.REDACT, SubjectRule.DROP)


def part_read(text: str, field: str = "part") -> int:
    """The number of a part in an address. Raises Invalid."""
    if not (text.isascii() and text.isdecimal() and len(text) <= LONGEST_NUMBER):
        raise Invalid(errors=[FieldError(field, "a whole number from 1")])
    return int(text)


def pack_count(noted: int) -> int:
    """The number of packs that an export fills, at least 1. noted: its memories."""
    return max(1, -(-noted // MOST_MEMORIES))


def pack_blocks(actor: Actor, job: JobView, part: int, now: datetime) -> Iterator[bytes]:
    """One pack of an export, block by block. part: from 1. Use inside `acting`; the blocks may be read outside.

    Raises Forbidden, also at a block; Invalid for another part; TooLarge; Conflict at the first block where no memory
    may leave. Writes: AuditEntry …, for each block.
    """
    authorize(actor, Permission.STORE_MANAGE)
    noted = ActionItem.objects.filter(tenant_id=actor.tenant_id, job_id=job.id).order_by("cube_id")
    count = pack_count(noted.count())
    if not 1 <= part <= count:
        raise Invalid(errors=[FieldError("part", f"from 1 to {count}")])
    start = (part - 1) * MOST_MEMORIES
    ids = list(noted.values_list("cube_id", flat=True)[start : start + MOST_MEMORIES])
    _check_size(actor, ids)
    stated = {
        "name": f"{Tenant.objects.get(id=actor.tenant_id).slug}/export",
        "version": "1.0.0",
        "title": f"Export, part {part} of {count}",
        "created_at": now,
    }
    return _write_blocks(actor, ids, stated)


def _check_size(actor: Actor, ids: list[UUID]) -> None:
    """Refuse before the first byte what no reader of packs accepts. Raises TooLarge."""
    present = CubeVersion.objects.filter(tenant_id=actor.tenant_id, cube_id__in=ids, number=F("cube__version"))
    size = Func(F("sealed"), function="octet_length", output_field=IntegerField())
    if (present.aggregate(size=Sum(size))["size"] or 0) > LARGEST_MEMORIES:
        raise TooLarge(f"A pack holds at most {LARGEST_MEMORIES} bytes of text. Export fewer memories.")


def _write_blocks(actor: Actor, ids: list[UUID], stated: dict[str, object]) -> Iterator[bytes]:
    kept, stayed = 0, Counter[str]()
    with PackWriter() as writer:
        for start in range(0, len(ids), PART):
            actor = actor_now(actor)  # a download may take longer than the right to it lasts
            items, reasons = _read_part(actor, ids[start : start + PART])
            kept += len(items)
            stayed += reasons
            block = writer.add(items)
            if kept:  # what fails before the first memory is still told by a status
                yield block
        told = ", ".join(f"{reason}: {count}" for reason, count in sorted(stayed.items()))
        if not kept:
            raise Conflict(f"None of these memories may leave in a pack ({told or 'none is there'}).")
        key = export_signing_key(actor.tenant_id)
        description = f"Left out: {told}."[:300] if told else ""
        yield writer.close({**stated, "description": description}, public_key=key.public_key(), sign=key.sign)


@with_blobs
def _read_part(actor: Actor, ids: list[UUID]) -> tuple[list[Item], Counter[str]]:
    """The memories of a part that may leave, and how many stay by reason. Writes: AuditEntry …."""
    with acting(actor):
        authorize(actor, Permission.STORE_MANAGE)
        visible = Cube.objects.visible_to(actor).filter(id__in=ids).order_by("id")
        dropped, ids = packs_drop(actor, list(visible.values_list("id", flat=True)))
        views = cubes_read(actor=actor, cube_ids=ids, verb=Verb.MEMORY_EXPORTED, is_use=False, leaves=True)
        decided = [*dropped, *memories_scan(actor=actor, pack_id=actor.tenant_id, views=views, rules=RULES)]
    reasons = (reason for leaving in decided if leaving.treatment is Treatment.DROPPED for reason in leaving.reasons)
    return [leaving.item for leaving in decided if leaving.item is not None], Counter(reasons)
