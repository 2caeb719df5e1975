"""Reads the files of the demo. Times have the form `DAYS HH:MM`: days ago, and the time of day (UTC)."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
Entry = dict[str, Any]


def story_read() -> Entry:
    """Return the steps of the story, except memories, by kind."""
    story: Entry = json.loads((DATA / "story.json").read_text(encoding="utf-8"))
    return story


def memories_read() -> list[Entry]:
    """Return the memories of the story, one per line of the file, oldest first."""
    lines = (DATA / "memories.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def parse_story_time(at: str, today: datetime) -> datetime:
    """Return the time that `DAYS HH:MM` means, counted back from `today`."""
    days, _, time = at.partition(" ")
    hour, _, minute = time.partition(":")
    return (today - timedelta(days=int(days))).replace(hour=int(hour), minute=int(minute), second=0, microsecond=0)
