"""Measures the days that are stored of messages that name one: "Monday week", 大年初三.

Somebody who had not seen the product wrote the messages, with the time of saying and the day of each
(docs/benchmarks.md). Every second one was used to mend what reads times; the others are only reported.
"""

import json
import uuid
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.client import Client, Target
from benchmarks.tables import markdown

DATA = Path(__file__).parent / "data" / "dates.json"
HALVES = ("mended", "reported")


def dates(target: Target) -> dict[str, Any]:
    """Return the share of messages with the right day by language and half, and the messages without it."""
    client = Client(target)
    rows = json.loads(DATA.read_text(encoding="utf-8"))
    place = f"/dates/{uuid.uuid4().hex[:8]}"
    right: dict[str, list[bool]] = {}
    missed: dict[str, list[str]] = {}
    for at, row in enumerate(rows):
        name = f"{row['id'][:2]}, {HALVES[at % 2]}"
        is_right = row["day"] in _store_days(client, row, place)
        right.setdefault(name, []).append(is_right)
        if not is_right:
            missed.setdefault(name, []).append(row["id"])
    shares = {name: round(sum(found) / len(found), 3) for name, found in right.items()}
    return {"messages": len(rows), "right": shares, "missed": missed}


def dates_table(figures: dict[str, Any]) -> str:
    return markdown(["messages", "right day"], [[name, share] for name, share in figures["right"].items()])


def _store_days(client: Client, row: dict[str, str], place: str) -> set[str]:
    """Return the days of the memories of one message, in the speaker's offset. They are erased again."""
    said = datetime.fromisoformat(row["said"])
    message = {"role": "user", "content": row["text"], "timestamp": row["said"], "message_id": row["id"]}
    body = {"messages": [message], "session_id": row["id"], "infer": True, "namespace": place}
    stored = client.call("POST", "memories/", body)["results"]
    times = [datetime.fromisoformat(memory["event_time"]) for memory in stored if memory["event_time"]]
    for memory in reversed(stored):  # a message goes with its statements
        client.call("DELETE", f"memories/{memory['id']}/?purge=true")
    # A day is stored as its midnight in UTC, an hour as its moment.
    return {f"{time:%Y-%m-%d}" for time in times} | {f"{time.astimezone(said.tzinfo):%Y-%m-%d}" for time in times}
