"""Folder of the test servers' files: in memory if there is room, because a copy of a database is six hundred files, and
a disk takes ten times as long.
"""

import shutil
import tempfile
from pathlib import Path

IN_MEMORY = Path("/dev/shm")
ROOM = 4 * 1024**3  # bytes; a whole run has taken less than one


def scratch_place() -> Path:
    """The folder to make folders of servers in. Others may pass through it: the servers' account has to."""
    if IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free >= ROOM:
        return IN_MEMORY
    return Path(tempfile.gettempdir())
