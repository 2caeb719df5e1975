"""Tests of words: names use those of docs/glossary.md, and docstrings say what something does or is."""

import ast
import re
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


def replaced_names(root: Path) -> list[str]:
    """`path: name` of each file, class and function whose name has a replaced word."""
    names: list[str] = []
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.py")):
        relative = path.relative_to(root)
        if "migrations" in relative.parts:
            continue
        used = sorted({path.stem} | names_in(path.read_text(encoding="utf-8")))
        names += [f"{relative}: {name}" for name in used if not REPLACED.isdisjoint(words_of(name))]
    return names


def test_no_name_has_a_replaced_word() -> None:
    assert not (names := replaced_names(ROOT)), f"use the words of docs/glossary.md: {names}"


@pytest.mark.parametrize("name", ["test_nothing_is_told", "SightOfActor", "outbox_parked"])
def test_name_with_a_replaced_word_is_listed(name: str, tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "rooms.py").write_text(f"def {name}() -> None: ...\n", encoding="utf-8")
    assert replaced_names(tmp_path) == [f"vault/rooms.py: {name}"]


RIDDLE = re.compile(r"(Of|How|What|Whatever|When|Where|Whether|Which|Who|Whoever|Whom|Whose|Why)\b")
WITH_DOCSTRING = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def riddles(root: Path) -> list[str]:
    """`path: docstring` of each docstring that opens with a question word, which names no subject."""
    openings: list[str] = []
    for path in sorted(path for folder in (*FOLDERS, "scripts") for path in (root / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            docstring = ast.get_docstring(node) if isinstance(node, WITH_DOCSTRING) else None
            if docstring and RIDDLE.match(docstring):
                openings.append(f"{path.relative_to(root)}: {docstring.splitlines()[0]}")
    return openings


def test_no_docstring_opens_with_a_question_word() -> None:
    assert not (openings := riddles(ROOT)), f"begin with a verb or a noun: {openings}"


@pytest.mark.parametrize("opening", ["Whether it lives.", "What is stored.", "Of both."])
def test_docstring_that_opens_with_a_question_word_is_listed(opening: str, tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "rooms.py").write_text(f'def room() -> None:\n    """{opening}"""\n', encoding="utf-8")
    assert riddles(tmp_path) == [f"vault/rooms.py: {opening}"]


def test_not_found_as_in_http_is_no_replaced_word() -> None:
    assert REPLACED.isdisjoint(words_of("NotFound") | words_of("test_missing_job_is_not_found"))
