"""The files of the demo. Times read `DAYS HH:MM`: days ago, and the time of day (UTC)."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
Entry = dict[str, Any]


def story_read() -> Entry:
    """Everything but the memories, by kind of step."""
    story: Entry = json.loads((DATA / "story.json").read_text(encoding="utf-8"))
    return story


def memories_read() -> list[Entry]:
    """One memory a line, in the order of their times."""
    lines = (DATA / "memories.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def parse_story_time(at: str, today: datetime) -> datetime:
    """`DAYS HH:MM` before `today`."""
    days, _, time = at.partition(" ")
    hour, _, minute = time.partition(":")
    return (today - timedelta(days=int(days))).replace(hour=int(hour), minute=int(minute), second=0, microsecond=0)
