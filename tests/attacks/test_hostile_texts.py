"""No text of a user takes long to read: the time of each function grows with the text, and no faster."""

import importlib
import pkgutil
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import governance
import vault
from benchmarks.hostile_texts import LENGTH, hostile_texts, processor_seconds
from benchmarks.text_functions import FUNCTIONS, NOT_A_TEXT, TextFunction
from governance.privacy.pii.detector import PatternDetector
from tests.factories import World
from tests.vault.api.contract import Contract, contract
from vault.cubes.differences import text_difference
from vault.reader.rules import is_question, sentences, statements
from vault.reader.rules.questions import question_parts

LIMIT_OF_A_CALL = 4.0  # seconds of processor time of a call with a text of LENGTH: all functions, and the database
LIMIT = 0.5  # seconds of processor time for a text of LENGTH
SHORT = LENGTH // 20
QUICK = LIMIT / 400  # for a SHORT text: even if the time grows with the square, a whole one is within LIMIT
SLOWEST = 3  # texts of each function that are read whole, by their time when they are short
TRIES = 4  # of which the quickest counts: another process may use the same core
INLINE = re.compile(r"\bre\.(?:sub|subn|match|search|split|findall|finditer|fullmatch)\(")
# Patterns made of the names of a question, escaped, and one of a file of the product.
INLINE_KNOWN = {
    "vault/web/docs_markdown.py": 1,
    "vault/retrieval/question.py": 2,
    "governance/audit/reading/files.py": 1,
}


def _quickest(function: TextFunction, text: str) -> float:
    """The least of a few runs; one that is quick enough is not repeated."""
    best = processor_seconds(function.run, text)
    for _ in range(TRIES - 1):
        if best <= LIMIT:
            break
        best = min(best, processor_seconds(function.run, text))
    return best


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str, str]]:
    """Each hostile text in both lengths."""
    whole = dict(hostile_texts(LENGTH))
    return [(name, short, whole[name]) for name, short in hostile_texts(SHORT)]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.name)
def test_hostile_texts_are_read_in_time(
    function: TextFunction, pairs: list[tuple[str, str, str]], full_size: bool
) -> None:
    function.run("words of 12 May, 中文")  # what is loaded once is no cost of a text
    taken = sorted(
        ((processor_seconds(function.run, short), name, whole) for name, short, whole in pairs), reverse=True
    )
    suspects = [(name, whole) for seconds, name, whole in taken[: None if full_size else SLOWEST] if seconds > QUICK]
    slow = {name: seconds for name, whole in suspects if (seconds := _quickest(function, whole)) > LIMIT}
    assert not slow


@pytest.mark.parametrize(
    "title",
    ["1234567 1" + "(" * 64, "1234567 1" + "(" * 491, "1234567 1" + "()" * 245],
    ids=["64 parentheses", "a whole title", "pairs"],
)
def test_parentheses_after_a_number_do_not_stop_the_detector(title: str) -> None:
    detector = PatternDetector(("CN", "US", "GB"))
    assert processor_seconds(detector.find, title) < LIMIT


DOTS = "." * 31_998 + "a"


@pytest.mark.parametrize("read", [sentences, statements, is_question, question_parts])
def test_row_of_dots_does_not_stop_the_reader(read: Any) -> None:
    assert processor_seconds(read, DOTS) < LIMIT


WAYS: dict[str, Callable[[Contract, str, str], object]] = {
    "title": lambda alice, _, text: alice.post("memories/", {"content": "A heron.", "title": text[-500:]}),
    "memory": lambda alice, _, text: alice.post("memories/", {"content": text}),
    "message": lambda alice, _, text: alice.post(
        "memories/", {"messages": [{"role": "user", "content": text}], "infer": True}
    ),
    "turn": lambda alice, conversation, text: alice.post(f"conversations/{conversation}/turns/", {"content": text}),
    "question": lambda alice, _, text: alice.post("memories/search/", {"query": text[-8_000:]}),
}


@pytest.mark.full
@pytest.mark.parametrize("way", WAYS)
def test_no_hostile_text_holds_the_interpreter_whichever_way_it_comes_in(
    world: World, way: str, pytestconfig: pytest.Config
) -> None:
    """A few of the texts, drawn by --seed."""
    alice = contract(world, "alice")
    conversation = alice.post("conversations/", {}).json["id"]
    WAYS[way](alice, conversation, "What did Anna say on 12 May?")  # what is loaded once is no cost of a text
    drawn = random.Random(pytestconfig.getoption("--seed")).sample([*hostile_texts(LENGTH)], 4)
    texts = [("dots and a letter", DOTS), *drawn]
    taken = {name: processor_seconds(lambda text: WAYS[way](alice, conversation, text), text) for name, text in texts}
    assert {name: seconds for name, seconds in taken.items() if seconds > LIMIT_OF_A_CALL} == {}


def test_dates_without_end_do_not_hold_the_detector() -> None:
    function = next(entry for entry in FUNCTIONS if entry.name == "personal data of a text")
    assert _quickest(function, ("1/1/2020 " * 3_556)[:LENGTH]) < LIMIT


@pytest.mark.parametrize(("before", "after"), [("中文", "文中字"), ("a b ", "b a b "), ("一", "一二")])
def test_two_versions_of_few_words_do_not_stop_the_comparison(before: str, after: str) -> None:
    assert processor_seconds(lambda _: text_difference((before * 600)[:1_190], (after * 600)[:1_190]), "") < LIMIT


def test_every_pattern_is_listed_with_the_function_that_uses_it() -> None:
    """A new pattern joins benchmarks/text_functions.py; one that reads no user's text joins NOT_A_TEXT."""
    listed = {
        (module, name)
        for function in FUNCTIONS
        for module, names in function.patterns.items()
        for name in names.split()
    }
    listed |= {(module, name) for module, names in NOT_A_TEXT.items() for name in names.split()}
    assert set(_patterns()) - listed == set()


def test_every_pattern_has_a_name() -> None:
    """`re.sub("…", …)` has no name that could be listed."""
    found = {}
    for package in (governance, vault):
        root = Path(str(package.__file__)).parent
        for path in root.rglob("*.py"):
            count = len(INLINE.findall(path.read_text(encoding="utf-8")))
            if count:
                found[str(path.relative_to(root.parent))] = count
    assert found == INLINE_KNOWN


def _patterns() -> Iterator[tuple[str, str]]:
    """Module and name of each compiled pattern, where it is made."""
    for package in (governance, vault):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if ".migrations" not in found.name and ".management" not in found.name:
                module = importlib.import_module(found.name)
                yield from ((found.name, name) for name in _made_in(module))


def _made_in(module: ModuleType) -> Iterator[str]:
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    for name, value in vars(module).items():
        if any(_within(value)) and re.search(rf"^(?:\w+, )*{name}\b[^\n]* = ", source, re.MULTILINE):
            yield name


def _within(value: Any, depth: int = 0) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        yield value
    elif depth < 4:
        parts = (
            value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list, frozenset)) else ()
        )
        if is_dataclass(value) and not isinstance(value, type):
            parts = [getattr(value, field.name) for field in fields(value)]
        for part in parts:
            yield from _within(part, depth + 1)
