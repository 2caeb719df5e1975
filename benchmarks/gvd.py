"""Reads GVD, the dialogues of MemoryBank (Zhong et al., arXiv 2305.10250), in the layout of people with messages and
questions. The data is not part of this project.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TUNING = 2  # the first people of a file, on which methods may be tuned; figures of the others are reported


@dataclass(frozen=True)
class Dialogue:
    """A person's talk with an assistant. questions: each with its parts, of which any message holds that part of the
    answer; no parts: the dialogue does not answer it."""

    person: str
    messages: tuple[dict[str, str], ...]
    questions: tuple[tuple[str, tuple[frozenset[str], ...]], ...]


def is_gvd(data: Any) -> bool:
    """Return whether the content of a JSON file has this layout."""
    return isinstance(data, list) and bool(data) and isinstance(data[0], dict) and "person" in data[0]


def dialogues(path: Path) -> list[Dialogue]:
    """Return the dialogues of a file, in its order. Raises OSError; ValueError; KeyError; TypeError."""
    return [
        Dialogue(
            person=row["person"],
            messages=tuple(row["messages"]),
            questions=tuple(
                (asked["question"], tuple(map(frozenset, asked["evidence"]))) for asked in row["questions"]
            ),
        )
        for row in json.loads(path.read_text(encoding="utf-8"))
    ]
