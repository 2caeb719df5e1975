"""Words for the facts of audit entries."""

import ast
from pathlib import Path

import pytest
from django.utils import translation

from governance.vocabulary import Verb
from governance.web.audit_facts import NAMES
from governance.web.verb_words import AREAS, verb_groups

PACKAGES = ("governance", "vault")


def list_details() -> set[str]:
    """Return the names of all facts that code writes as a literal `detail` of an audit entry."""
    calls = (
        node
        for package in PACKAGES
        for path in Path(package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "record"
    )
    values = (word.value for call in calls for word in call.keywords if word.arg == "detail")
    dicts = (value for value in values if isinstance(value, ast.Dict))
    return {str(key.value) for found in dicts for key in found.keys if isinstance(key, ast.Constant)}


def test_each_fact_of_an_audit_entry_has_a_name_for_readers() -> None:
    found = list_details()
    assert len(found) > 40
    assert found - set(NAMES) == set()


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_each_verb_is_a_phrase_of_its_area_in_both_languages(language: str) -> None:
    with translation.override(language):
        groups = verb_groups(Verb)
        words = [words for _area, choices in groups for _verb, words in choices]

    assert len(words) == len(list(Verb))
    assert {str(verb).partition(".")[0] for verb in Verb} == set(AREAS)
    assert not [text for text in (*words, *(area for area, _choices in groups)) if "." in text or "_" in text]
    assert language == "en" or not [text for text in words if text.isascii()]
