"""Profiles a call by function."""

import cProfile
import pstats
from collections.abc import Callable, Sequence
from pathlib import Path

MOST = 15
ROOT = Path(__file__).resolve().parents[1]
OURS = ("vault", "governance", "memos_web")
Spent = dict[str, float]
Row = tuple[str, str, float]


def profile_call(call: Callable[[], object]) -> dict[str, Spent]:
    """Return seconds by function: of every function itself, and of the product's functions with their callees.

    The profiler slows small functions most, so shares are more reliable than seconds.
    """
    profile = cProfile.Profile()
    profile.runcall(call)
    stats = pstats.Stats(profile).stats.items()  # type: ignore[attr-defined]
    own: list[Row] = [(file, _name(file, line, name), own) for (file, line, name), (_, _, own, _, _) in stats]
    total: list[Row] = [(file, _name(file, line, name), whole) for (file, line, name), (_, _, _, whole, _) in stats]
    whole = sum(seconds for _, _, seconds in own)
    return {
        "everything, by itself": {"the whole call": round(whole, 3), **_most(own)},
        "the product's functions, with what they call": _most([row for row in total if _is_ours(row[0])]),
    }


def _most(rows: Sequence[Row]) -> Spent:
    return {name: round(seconds, 3) for _, name, seconds in sorted(rows, key=lambda row: -row[2])[:MOST]}


def _is_ours(file: str) -> bool:
    path = Path(file)
    return path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in OURS


def _name(file: str, line: int, function: str) -> str:
    path = Path(file)
    return function if line == 0 else f"{path.parent.name}/{path.name}:{line} {function}"
