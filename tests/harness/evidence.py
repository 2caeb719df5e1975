"""The figures of a promise at its full size, kept where readers of the repository find them."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.harness.servers import ROOT

FOLDER = ROOT / "docs" / "evidence"
Figures = Mapping[str, str | int | float | bool]
Evidence = Callable[[int, str, Figures], None]


def evidence(row: int, name: str, figures: Figures, *, folder: Path = FOLDER) -> None:
    """Write `name`'s figures into the file of one row of the promises; those of other names stay."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"row-{row:02}.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    known[name] = dict(figures)
    path.write_text(json.dumps(known, indent=2, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


@pytest.fixture
def evidence_of(full_size: bool) -> Evidence:
    """`evidence`, which writes only in a run at full size."""
    return evidence if full_size else lambda row, name, figures: None
