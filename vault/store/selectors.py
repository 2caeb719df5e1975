"""Packs, versions and files of the actor's own tenant."""

from dataclasses import dataclass, field
from uuid import UUID

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import Conflict, NotFound
from governance.keys.services import open_sealed
from governance.keys.signing_keys import signing_key
from governance.pages import Pages
from governance.vocabulary import Permission, Verb
from vault.models import Pack, PackVersion
from vault.store.file_process import run_in_file_process
from vault.store.files import Item, Manifest, file_read
from vault.store.files import Pack as PackFile
from vault.store.lookup import pack_locate, pack_target, version_locate, version_place
from vault.vocabulary import PackState

WITH_FILE = frozenset({PackState.READY, PackState.DEPRECATED, PackState.YANKED})


@dataclass(frozen=True)
class Verdict:
    """The result of checking a file. is_own: signed by this installation."""

    manifest: Manifest
    items: tuple[Item, ...] = field(repr=False)
    is_own: bool


def packs_list(*, actor: Actor, pages: Pages) -> list[tuple[Pack, PackVersion | None]]:
    """Return packs with their newest versions, newest pack first. Raises Forbidden. Writes: AuditEntry."""
    authorize(actor, Permission.STORE_MANAGE)
    with acting(actor):
        packs = list(pages.take(Pack.objects.filter(tenant_id=actor.tenant_id).order_by("-id")))
        ids = [pack.id for pack in packs]
        record(actor=actor, verb=Verb.PACK_LISTED, object_type="pack", object_ids=ids)
        newest = newest_versions(ids)
        return [(pack, newest.get(pack.id)) for pack in packs]


def pack_get(*, actor: Actor, pack_id: UUID) -> Pack:
    """Return one pack. Raises NotFound; Forbidden. Writes: AuditEntry."""
    with acting(actor):
        row = pack_locate(actor, pack_id)
        authorize(actor, Permission.STORE_MANAGE, pack_target(row))
        record(actor=actor, verb=Verb.PACK_READ, object_type="pack", object_ids=[row.id])
        return row


def versions_list(*, actor: Actor, pack_id: UUID, pages: Pages) -> list[PackVersion]:
    """Return the versions of a pack, newest first. Raises NotFound; Forbidden. Writes: AuditEntry."""
    with acting(actor):
        pack = pack_get(actor=actor, pack_id=pack_id)
        return list(pages.take(PackVersion.objects.filter(pack=pack).defer("sealed").order_by("-id")))


def version_get(*, actor: Actor, pack_id: UUID, number: str) -> PackVersion:
    """Return one version. Raises NotFound; Forbidden. Writes: AuditEntry."""
    with acting(actor):
        pack = pack_get(actor=actor, pack_id=pack_id)
        found = PackVersion.objects.filter(pack=pack, number=number).first()
    if found is None:
        raise NotFound
    found.pack = pack
    return found


def version_file(*, actor: Actor, version_id: UUID) -> bytes:
    """Return the signed file of a version. Raises NotFound; Forbidden; Conflict; KeyUnavailable. Writes: AuditEntry."""
    with acting(actor):
        row = version_locate(actor, version_id)
        authorize(actor, Permission.STORE_MANAGE, pack_target(row.pack))
        content = file_open(row)
        record(actor=actor, verb=Verb.PACK_VERSION_READ, object_type="pack_version", object_ids=[row.id])
    return content


def version_items(*, actor: Actor, version_id: UUID) -> PackFile:
    """Return the manifest and memories of a version, read by the process for files.

    Raises and writes as `version_file`; also raises Unavailable.
    """
    return run_in_file_process(actor.tenant_id, file_read, version_file(actor=actor, version_id=version_id))


def file_open(row: PackVersion) -> bytes:
    """Return the decrypted file of a version, for a caller that has checked the reader's permission.

    Raises Conflict if there is no file; KeyUnavailable.
    """
    if row.state not in WITH_FILE:
        raise Conflict(f"The version is {row.state}, and has no file.")
    if not row.sealed:
        raise Conflict("The version was erased.")
    content = open_sealed(tenant_id=row.tenant_id, place=version_place(row), blob=bytes(row.sealed))
    if content is None:
        raise Conflict("The version was erased.")
    return content


def file_verify(*, actor: Actor, content: bytes) -> Verdict:
    """Check a file that somebody sent; nothing of it is stored.

    Raises Forbidden; Invalid, also PackInvalid; TooLarge; Unavailable.
    """
    authorize(actor, Permission.MEMORY_READ)
    pack = run_in_file_process(actor.tenant_id, file_read, content)
    with acting(actor):
        record(
            actor=actor,
            verb=Verb.MANIFEST_VERIFIED,
            object_type="manifest",
            object_ids=[],
            detail={"verdict": "valid", "key": pack.manifest.key_id},
        )
    return Verdict(pack.manifest, pack.items, pack.manifest.key_id == signing_key().key_id())


def newest_versions(pack_ids: list[UUID]) -> dict[UUID, PackVersion]:
    """Return the newest version of each pack, without its file."""
    rows = PackVersion.objects.filter(pack_id__in=pack_ids).defer("sealed").order_by("pack_id", "parts")
    return {row.pack_id: row for row in rows}
