"""Repetition of tenant deletions in a database that was restored from an older backup."""

from governance.actor import Actor
from governance.database import acting
from governance.keys.services import key_store
from governance.keys.tables import ALL_SCOPES
from governance.tenants.selectors import tenants_all
from governance.tenants.services import command_line_actor
from vault.deletion.deletion_job import blobs_delete, rows_erase, tenant_close, tenant_lock
from vault.deletion.rows import tenant_counts
from vault.deletion.services import owner_check
from vault.embeddings.index_copies import read_index_name, tenant_copies_delete


def deletions_apply() -> int:
    """Delete the tenants whose keys were destroyed but whose rows exist. Return their number.

    The database refuses a deletion if the backup has a hold. Raises KeyUnavailable; BlobStoreUnavailable. Writes the
    rows of a deletion, as the system actor.
    """
    deleted = {tenant_id for tenant_id, scope in key_store().destroyed_scopes() if scope == ALL_SCOPES}
    present = [tenant_id for _slug, tenant_id in tenants_all() if tenant_id in deleted]
    for tenant_id in present:
        _delete_again(command_line_actor(tenant_id))
    return len(present)


def _delete_again(system: Actor) -> None:
    owner_check(system)
    with acting(system):
        counts, index = tenant_counts(system.tenant_id), read_index_name(system)
        tenant_lock(system, keep=None)
    removed = 1
    while removed:
        with acting(system):
            removed = rows_erase()
    blobs_delete(system.tenant_id)
    tenant_copies_delete(system.tenant_id, index)
    with acting(system):
        asked_by = {"kind": system.principal_kind, "id": str(system.principal_id)}
        tenant_close(system, counts=counts, asked_by=asked_by)
