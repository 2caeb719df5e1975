"""Room on the disks that the installation writes to."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

FOLDERS = ("keys", "blobs", "checkpoints", "exports", "mail", "pg")  # each may be a volume of its own


@dataclass(frozen=True)
class Room:
    """The folder of the installation whose disk has the fewest free bytes."""

    folder: Path
    free: int

    @property
    def is_full(self) -> bool:
        return self.free < settings.DISK_LEAST_FREE_BYTES


def least_room() -> Room:
    """Raises OSError where the data directory cannot be looked at."""
    data: Path = settings.DATA_DIR
    folders = [data, *(data / name for name in FOLDERS if (data / name).is_dir())]
    return min((Room(folder, shutil.disk_usage(folder).free) for folder in folders), key=lambda room: room.free)
