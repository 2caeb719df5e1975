"""Backs up the database, its files and the keys once a day, and deletes what is older than MEMOS_BACKUP_DAYS.

The command of the service `backup` in docker-compose.yml: `backups.py FOLDER KEY_COPIES [--hour 3]`. It begins with a
backup if the newest one is a day old. `--once` ends after one; `--check` exits 0 if the newest is at most 26 hours old.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

MANAGE = [sys.executable, str(Path(__file__).resolve().parents[1] / "manage.py")]
COMPLETE = "backup.json"  # written last
NAME = "%Y-%m-%dT%H-%M-%SZ"
DAY, LATE = timedelta(days=1), timedelta(hours=26)
RETRY_SECONDS = 900
PROMISED_DAYS = "30"  # the product's own default


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("key_copies", type=Path)
    parser.add_argument("--hour", type=int, default=3, choices=range(24), metavar="0..23", help="of the day, in UTC")
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    if asked.check:
        return 0 if datetime.now(UTC) - newest(asked.folder) <= LATE else 1
    if asked.once:
        return back_up(asked.folder, asked.key_copies)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    while True:
        wait = next_time(newest(asked.folder), asked.hour) - datetime.now(UTC)
        time.sleep(max(0.0, wait.total_seconds()))
        if back_up(asked.folder, asked.key_copies):
            time.sleep(RETRY_SECONDS)


def newest(folder: Path) -> datetime:
    """Return the time of the newest complete backup; without one, the beginning of time."""
    times = [datetime.strptime(path.parent.name, NAME).replace(tzinfo=UTC) for path in complete(folder)]
    return max(times, default=datetime.min.replace(tzinfo=UTC))


def complete(folder: Path) -> list[Path]:
    return [path for path in folder.glob(f"*/{COMPLETE}") if path.parent.name.endswith("Z")]


def next_time(last: datetime, hour: int) -> datetime:
    """Return the first such hour after the last backup; now if that was more than a day ago."""
    now = datetime.now(UTC)
    if now - last >= DAY:
        return now
    at = last.replace(hour=hour, minute=0, second=0, microsecond=0)
    return at if at > last else at + DAY


def back_up(folder: Path, key_copies: Path) -> int:
    """Make a backup and a copy of the keys, and delete old backups. Returns the exit code of what failed, or 0."""
    target = folder / datetime.now(UTC).strftime(NAME)
    for words in ([str(target)], ["--keys", str(key_copies)]):
        if code := subprocess.run([*MANAGE, "backup", *words], check=False).returncode:
            return code
    days = int(os.environ.get("MEMOS_BACKUP_DAYS") or PROMISED_DAYS)
    for path in complete(folder):
        made = datetime.strptime(path.parent.name, NAME).replace(tzinfo=UTC)
        if datetime.now(UTC) - made >= timedelta(days=days):
            shutil.rmtree(path.parent)
            sys.stderr.write(f"deleted {path.parent}, which is {days} days old\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
