"""National ids by the examples of python-stdnum, passports and driving licences by their words."""

import importlib
import re

import pytest

from governance.privacy.pii import state_numbers as rules
from governance.privacy.pii.state_numbers import state_numbers
from tests.governance.mutants import mutant
from tests.harness.cases import each_case

EXAMPLE = re.compile(r">>> validate\(['\"]([^'\"]+)['\"]\)\n(?:u?['\"])", re.MULTILINE)
BY_COUNTRY = sorted(
    {rule for rule in rules._FORMS if rule not in rules._OWN_CHECKS}
    | {rule for each in rules._PLAIN.values() for rule in each}
)
OWN = ("HKID G123456(A)", "NRIC S1234567D", "身分證A123456789", "licence MORGA753116SM9IJ")
PAPERS = (
    "My passport number is X1234567.",
    "护照号E12345678",
    "Her driver's license 6940579 was lost",
    "驾驶证D12345678",
    "driving licence no. S530-460-99-424-0",
)
NOTHING = (
    "The order 44051401359 has shipped.",
    "My passport expires 2027-05-03.",
    "HKID G123456(3)",
    "NRIC S1234567E",
    "身分證A123456788",
    "PESEL 44051401358",
    "See RFC 2616, section 12345678.",
)


def list_numbers(text: str) -> list[str]:
    return [text[span.start : span.end] for span in state_numbers(text)]


def examples_of(rule: str) -> list[str]:
    """Return the valid numbers in the documentation of a module of python-stdnum."""
    return EXAMPLE.findall(importlib.import_module(f"stdnum.{rule}").__doc__ or "")


def test_ids_of_many_countries_have_examples() -> None:
    countries = {rule.partition(".")[0] for rule in BY_COUNTRY if examples_of(rule)}
    assert len(countries) >= 25


@each_case("rule", BY_COUNTRY)
def test_example_of_a_national_id_is_detected(rule: str) -> None:
    for number in map(str.upper, examples_of(rule)):
        text = f"Her national id number is {number}."
        assert any(number.strip() in found or found in number for found in list_numbers(text)), number


@each_case("text", (*OWN, *PAPERS))
def test_number_with_its_word_is_detected(text: str) -> None:
    assert list_numbers(text) != []


@each_case("text", NOTHING)
def test_other_number_is_not_detected(text: str) -> None:
    assert list_numbers(text) == []


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("return own(number) if own else bool(_check_of(rule)(number))", "return True", "NRIC S1234567E"),
        ('return word_before(found.string, found.start()) == "national_id"', "return True", NOTHING[0] + " ID"),
        ("or DAY.fullmatch(number)", "", NOTHING[1]),
    ],
)
def test_broken_rule_detects_other_numbers(old: str, new: str, text: str) -> None:
    broken = mutant(rules, old, new)
    assert list_numbers(text) == []
    assert list(broken.state_numbers(text)) != []
