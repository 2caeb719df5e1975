"""Names of files, classes and functions use the words of docs/glossary.md."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("governance", "vault", "memos_web", "benchmarks", "tests")
REPLACED = frozenset(
    {
        "alone",
        "around",
        "asker",
        "beyond",
        "breath",
        "door",
        "doors",
        "fitting",
        "following",
        "found",
        "gone",
        "hidden",
        "holder",
        "house",
        "houses",
        "kept",
        "knowing",
        "known",
        "law",
        "mend",
        "mended",
        "moments",
        "packed",
        "packing",
        "parked",
        "periods",
        "reckon",
        "reckoned",
        "reckoning",
        "rival",
        "rivals",
        "said",
        "seen",
        "sight",
        "sizes",
        "spans",
        "spoken",
        "standing",
        "survey",
        "surveying",
        "told",
        "trail",
        "wall",
    }
)


def words_of(name: str) -> set[str]:
    """The lower-case words of an identifier in snake_case or CamelCase, without HTTP's own term "not found"."""
    snake_case = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return set(snake_case.replace("not_found", "").split("_"))


def names_in(source: str) -> set[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)}


def replaced_names(root: Path) -> Counter[str]:
    """The number of names with a replaced word, by folder (`vault/chat`, or `vault` for its own files)."""
    counts: Counter[str] = Counter()
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.py")):
        relative = path.relative_to(root)
        if "migrations" in relative.parts:
            continue
        names = {path.stem} | names_in(path.read_text(encoding="utf-8"))
        counts["/".join(relative.parts[: min(2, len(relative.parts) - 1)])] += sum(
            not REPLACED.isdisjoint(words_of(name)) for name in names
        )
    return +counts


def listed_names() -> dict[str, int]:
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    return {folder: int(count) for folder, count in re.findall(r"^\| `([\w/]+)` \| (\d+) \|$", page, re.MULTILINE)}


def test_names_with_replaced_words_become_fewer() -> None:
    listed = listed_names()
    grown = {folder: count for folder, count in replaced_names(ROOT).items() if count > listed.get(folder, 0)}
    assert not grown, f"use the words of docs/glossary.md, more names than listed: {grown}"


@pytest.mark.parametrize("name", ["test_nothing_is_told", "SightOfActor", "outbox_parked"])
def test_replaced_word_in_a_name_is_counted(name: str, tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "rooms.py").write_text(f"def {name}() -> None: ...\n", encoding="utf-8")
    assert replaced_names(tmp_path) == {"vault": 1}
