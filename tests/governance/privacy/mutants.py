"""Detectors with a rule broken on purpose: a copy of its module, with one thing in its text changed."""

import importlib
from functools import partial
from pathlib import Path
from types import ModuleType

from governance.privacy.pii.detector import PatternDetector, Rule, rules_for

REGIONS = ("CN", "US", "GB")
ROOM = "governance.privacy.pii."
NAIVE = (
    "from governance.privacy.pii.patterns import find_accepted, has_long_number\n"
    'def compile_delimited(first, rest): return re.compile(rf"\\b{first}(?:{rest})\\b", re.DOTALL)'
)
# name: (module, its rule, what is changed, into what)
MUTANTS: dict[str, tuple[str, str, str, str]] = {
    "Luhn is not asked": ("numbers", "cards", "luhn.is_valid(digits)", "True"),
    "words end cards, Chinese or not": (
        "numbers",
        "cards",
        "from governance.privacy.pii.patterns import compile_delimited, find_accepted, has_long_number",
        NAIVE,
    ),
    "words end ids, Chinese or not": (
        "numbers",
        "national_ids",
        "from governance.privacy.pii.patterns import compile_delimited, find_accepted, has_long_number",
        NAIVE,
    ),
    "mod 97 is not asked": ("numbers", "ibans", "iban.is_valid(", "bool("),
    "the resident's check digit is not asked": (
        "numbers",
        "national_ids",
        "ric.calc_check_digit(number) != number[-1]",
        "False",
    ),
    "words before an address are not read": (
        "network",
        "network_addresses",
        "is not Topic.OTHER",
        "is not None or True",
    ),
    "words before a phone are not read": (
        "phones",
        "phones",
        "None if has_code else topic_before(self.text, start)",
        "None",
    ),
    "groups of a phone are not looked at": (
        "phones",
        "phones",
        "return _find_group_positions(self.pieces) <=",
        "return True or",
    ),
    "country codes are not read": (
        "phones",
        "phones",
        'return not self._may_ask() or _valid(f"+{number.digits}", None) is not None',
        "return False",
    ),
    "private keys are not seen": ("secrets", "secrets", "    yield from _private_keys(text)\n", ""),
}


def mutant(name: str) -> PatternDetector:
    """The usual detector with this rule broken."""
    module_name, rule_name, old, new = MUTANTS[name]
    broken = getattr(_break(ROOM + module_name, old, new), rule_name)
    rule: Rule = partial(broken, regions=REGIONS) if rule_name == "phones" else broken
    return PatternDetector(REGIONS, [rule if _name(sound) == rule_name else sound for sound in rules_for(REGIONS)])


def _break(name: str, old: str, new: str) -> ModuleType:
    original = importlib.import_module(name)
    source = Path(str(original.__file__)).read_text(encoding="utf-8")
    assert old in source, f"{name} has changed: {old}"
    made = ModuleType(name)
    exec(compile(source.replace(old, new), str(original.__file__), "exec"), made.__dict__)
    return made


def _name(rule: Rule) -> str:
    function = rule.func if isinstance(rule, partial) else rule
    return str(getattr(function, "__name__", ""))
