"""Checkpoints in the store that machines share, so that each machine compares with those that others signed.

One object for each checkpoint, as text: it is signed, and has no content.
"""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from governance.audit.verifier import Checkpoint, Unreadable, checkpoint_read
from governance.shared_files import PartStore, shared_store

PREFIX = "checkpoints"
NEWEST = 8  # checkpoints of others that are read where the newest are enough


def copy_write(store: PartStore, checkpoint: Checkpoint) -> None:
    """Write one checkpoint. Raises Unavailable."""
    name = f"{PREFIX}/{checkpoint.tenant}/{checkpoint.at[:10]}/{checkpoint.seq:012}"
    store.write(name, checkpoint.text().encode())


def checkpoints_elsewhere(tenant_id: UUID, known: list[Checkpoint], *, newest: bool) -> list[Checkpoint]:
    """Return the checkpoints of the shared store that this machine does not have, or the newest of the last two days.

    Raises Unavailable; Unreadable.
    """
    store = shared_store()
    if store is None:
        return []
    today = datetime.now(UTC).date()
    days = [f"{today - timedelta(days=1)}/", f"{today}/"] if newest else [""]
    found = sorted(entry.name for day in days for entry in store.entries(f"{PREFIX}/{tenant_id}/{day}"))
    seqs = {checkpoint.seq for checkpoint in known}
    names = [name for name in found if _seq_of(name) not in seqs]
    texts = (store.read(name) for name in (names[-NEWEST:] if newest else names))
    try:
        return [checkpoint for text in texts if text and (checkpoint := checkpoint_read(text.decode()))]
    except UnicodeDecodeError as error:
        raise Unreadable("a checkpoint in the shared store was changed") from error


def _seq_of(name: str) -> int:
    """Return the seal in an object's name; -1 for a name of others, which is then read and refused."""
    text = name.rpartition("/")[2]
    return int(text) if text.isdecimal() else -1
