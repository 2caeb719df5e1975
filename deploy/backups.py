"""Backs up the database, its files and the keys once a day, and deletes what is older than MEMOS_BACKUP_DAYS.

The command of the service `backup` in docker-compose.yml, and of the chart: `backups.py PLACE KEY_COPIES [--hour 3]`.
Each place is a folder or `s3://BUCKET/PREFIX`. It begins with a backup if the newest one is a day old. `--once` ends
after one; `--check` exits 0 if the newest is at most 26 hours old. `--keep N` also deletes all but the newest N.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from memos_web.backup.manifest import BackupError  # noqa: E402  the folder of the product comes first
from memos_web.backup.places import Place, place_of  # noqa: E402
from memos_web.config import ConfigError, read_config  # noqa: E402

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memos_web.settings.embedded")  # as manage.py; buckets need them
MANAGE = [sys.executable, str(ROOT / "manage.py")]
NAME = "%Y-%m-%dT%H-%M-%SZ"
DAY, LATE = timedelta(days=1), timedelta(hours=26)
RETRY_SECONDS = 900


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("place")
    parser.add_argument("key_copies")
    parser.add_argument("--hour", type=int, default=3, choices=range(24), metavar="0..23", help="of the day, in UTC")
    parser.add_argument("--keep", type=int, default=0, metavar="N", help="backups at most; 0: as many as days")
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    try:
        if is_same_bucket(asked.place, asked.key_copies):
            raise BackupError("the keys need another bucket than the database: together they open everything")
        config = read_config(os.environ)
        place = place_of(config, asked.place)
        if asked.check:
            return 0 if datetime.now(UTC) - newest(place) <= LATE else 1
        if asked.once:
            return back_up(place, asked.key_copies, config.backup_days, asked.keep)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        while True:
            wait = next_time(newest(place), asked.hour) - datetime.now(UTC)
            time.sleep(max(0.0, wait.total_seconds()))
            if back_up(place, asked.key_copies, config.backup_days, asked.keep):
                time.sleep(RETRY_SECONDS)
    except (BackupError, ConfigError) as error:
        sys.stderr.write(f"memos: {error}\n")
        return 1


def is_same_bucket(place: str, key_copies: str) -> bool:
    return place.startswith("s3://") and urlsplit(place).netloc == urlsplit(key_copies).netloc


def times(place: Place) -> dict[str, datetime]:
    """Return the times of complete backups by their names, the newest first."""
    names = [name for name in place.complete() if name.endswith("Z")]
    return {name: datetime.strptime(name, NAME).replace(tzinfo=UTC) for name in reversed(names)}


def newest(place: Place) -> datetime:
    """Return the time of the newest complete backup; without one, the beginning of time."""
    return max(times(place).values(), default=datetime.min.replace(tzinfo=UTC))


def next_time(last: datetime, hour: int) -> datetime:
    """Return the first such hour after the last backup; now if that was more than a day ago."""
    now = datetime.now(UTC)
    if now - last >= DAY:
        return now
    at = last.replace(hour=hour, minute=0, second=0, microsecond=0)
    return at if at > last else at + DAY


def back_up(place: Place, key_copies: str, days: int, keep: int) -> int:
    """Make a backup and a copy of the keys, and delete old backups. Returns the exit code of what failed, or 0."""
    target = place.below(datetime.now(UTC).strftime(NAME))
    for words in ([target.name], ["--keys", key_copies]):
        if code := subprocess.run([*MANAGE, "backup", *words], check=False).returncode:
            return code
    for number, (name, made) in enumerate(times(place).items()):
        if datetime.now(UTC) - made >= timedelta(days=days) or (keep and number >= keep):
            place.below(name).remove()
            sys.stderr.write(f"deleted {place.below(name).name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
