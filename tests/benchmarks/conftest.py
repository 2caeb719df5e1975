"""A made-up file in LoCoMo's layout: one conversation to tune on, one to check on."""

import json
from pathlib import Path
from typing import Any

import pytest

TURNS = (
    ("Ada", "I planted a cherry tree behind the old library last spring."),
    ("Ben", "Nice! My sister paints boats in the harbour of Genoa."),
    ("Ada", "Yesterday the neighbours' goat ate half of the cherries."),
    ("Ben", "We sold the blue boat to a baker from Turin."),
)


def sample(name: str) -> dict[str, Any]:
    """Two sessions of two turns, and one question of each kind that the loader must tell apart."""
    said = [
        {"speaker": who, "text": text, "dia_id": f"D{1 + n // 2}:{1 + n % 2}"} for n, (who, text) in enumerate(TURNS)
    ]
    return {
        "sample_id": name,
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Ben",
            "session_1": said[:2],
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_2": said[2:],
            "session_2_date_time": "9:05 am on 12 May, 2023",
        },
        "qa": [
            {"question": "What ate the cherries?", "category": 1, "evidence": ["D2:1"]},
            {"question": "Who bought the blue boat?", "category": 4, "evidence": ["D1:2; D2:2"]},
            {"question": "Never answered?", "category": 5, "evidence": ["D1:1"]},
            {"question": "Evidence that does not exist?", "category": 1, "evidence": ["D9:9"]},
        ],
    }


@pytest.fixture
def locomo_file(tmp_path: Path) -> Path:
    path = tmp_path / "made-up.json"
    path.write_text(json.dumps([sample("conv-26"), sample("conv-30")]), encoding="utf-8")
    return path
