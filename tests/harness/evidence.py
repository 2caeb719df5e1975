"""Figures of the promises, written down when they are run at their full size."""

import json
import platform
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import pytest

from tests.harness.servers import ROOT

FOLDER = ROOT / "docs" / "evidence"
Figure = str | int | float | bool
Evidence = Callable[..., None]


@pytest.fixture(scope="session")
def evidence(full_size: bool) -> Evidence:
    """`evidence(row=7, name="x", figures={…})` writes docs/evidence/row-07-x.json; at full size alone."""

    def write(*, row: int, name: str, figures: Mapping[str, Figure]) -> None:
        if full_size:
            _write(row, name, figures)

    return write


def _write(row: int, name: str, figures: Mapping[str, Figure]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    told = {
        "row": row,
        "name": name,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "figures": dict(figures),
    }
    path = FOLDER / f"row-{row:02}-{name}.json"
    path.write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
