"""A thread of the worker that sends the checkpoints of this machine's files to the store that machines share."""

import logging
import threading
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from governance.audit.checkpoint_copies import copy_write
from governance.audit.checkpoints import checkpoint_folder, checkpoints_folder, checkpoints_in_file, files_of
from governance.audit.verifier import Unreadable
from governance.errors import DomainError
from governance.shared_files import PartStore, shared_store

MARK = "shared"  # beside a tenant's files: the last seal whose checkpoint was sent, and the time of the file it is from
PAUSE_SECONDS = 15.0
FAILURES = (DomainError, OSError, Unreadable)
logger = logging.getLogger(__name__)


def share_forever(stop: threading.Event) -> None:
    """Send checkpoints until `stop` is set. Failures are logged and retried: files and rows have them meanwhile."""
    while not stop.is_set():
        try:
            copies_send()
        except FAILURES as error:
            logger.warning("checkpoints are not shared: %s", type(error).__name__)
        stop.wait(PAUSE_SECONDS)


def copies_send() -> int:
    """Send the checkpoints of this machine's files that were not sent yet; return their number.

    Raises Unavailable; OSError; Unreadable for a changed file, after those of other tenants.
    """
    store = shared_store()
    folders = sorted(checkpoints_folder().glob("*/")) if store else []
    sent, failure = 0, None
    for folder in folders:
        try:
            sent += _send(store, UUID(folder.name)) if store else 0
        except Unreadable as error:
            failure = error
    if failure:
        raise failure
    return sent


def _send(store: PartStore, tenant_id: UUID) -> int:
    files = files_of(tenant_id)
    if not files:
        return 0
    mark, changed = checkpoint_folder(tenant_id) / MARK, files[-1].stat().st_mtime_ns
    last, seen = _read_mark(mark)
    if seen == changed:
        return 0
    unsent = [each for file in files for each in checkpoints_in_file(file) if each.seq > last]
    for checkpoint in unsent:
        copy_write(store, checkpoint)
    mark.write_text(f"{max([last, *(each.seq for each in unsent)])} {changed}")
    return len(unsent)


def _read_mark(mark: Path) -> tuple[int, int]:
    """Return the last seal that was sent, and the time of its file; zeros if there is no mark, or a cut one."""
    with suppress(FileNotFoundError, ValueError):
        last, changed = mark.read_text().split()
        return int(last), int(changed)
    return 0, 0
