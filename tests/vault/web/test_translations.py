"""Chinese is complete: every string of the pages, translated, and compiled as it is written."""

import ast
import gettext
import re
from pathlib import Path

import pytest
from django.conf import settings
from django.template import engines
from django.utils import translation

ROOT = Path(settings.BASE_DIR)
MESSAGES = ROOT / "locale" / "zh_Hans" / "LC_MESSAGES"
CALLS = {"_", "gettext", "gettext_lazy", "ngettext", "ngettext_lazy"}
PLACEHOLDER = re.compile(r"%\(\w+\)s")


def entries() -> dict[str, str]:
    """msgid → msgstr of the .po file, its header left out. Plurals by their singular: Chinese has one form."""
    found: dict[str, str] = {}
    for block in (MESSAGES / "django.po").read_text(encoding="utf-8").split("\n\n")[1:]:
        assert "fuzzy" not in block
        found[_read_string(block, "msgid")] = _read_string(block, r"msgstr(?:\[0\])?")
    return found


def _read_string(block: str, key: str) -> str:
    match = re.search(rf'^{key} ((?:"(?:[^"\\]|\\.)*"\s*)+)', block, re.MULTILINE)
    assert match is not None, block
    return "".join(str(ast.literal_eval(part)) for part in re.findall(r'"(?:[^"\\]|\\.)*"', match[1]))


def used_in_templates() -> set[str]:
    found: set[str] = set()
    for path in (ROOT / "templates").rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        found |= set(re.findall(r'{%\s*translate "([^"]+)"', text))
        found |= set(re.findall(r'_\("([^"]+)"\)', text))
        for block in re.findall(r"{% blocktranslate [^%]*%}(.*?){% (?:plural|endblocktranslate) %}", text):
            found.add(re.sub(r"{{ (\w+) }}", r"%(\1)s", block))
    return found


def used_in_code() -> set[str]:
    found: set[str] = set()
    for path in [*(ROOT / "governance" / "web").glob("*.py"), *(ROOT / "vault" / "web").glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
                assert isinstance(node.args[0], ast.Constant)
                found.add(str(node.args[0].value))
    return found


def test_every_string_is_translated_and_none_is_left_over() -> None:
    assert set(entries()) == used_in_templates() | used_in_code()
    assert [name for name, translated in entries().items() if not translated] == []


def test_a_translation_keeps_the_places_for_values() -> None:
    for name, translated in entries().items():
        assert sorted(PLACEHOLDER.findall(name)) == sorted(PLACEHOLDER.findall(translated))


def test_the_compiled_catalogue_is_fresh() -> None:
    with (MESSAGES / "django.mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    for name, translated in entries().items():
        assert translated in {compiled.gettext(name), compiled.ngettext(name, name, 1)}


@pytest.mark.parametrize("template", ["governance/sign_in.html", "governance/sign_in_link_spent.html", "403_csrf.html"])
def test_a_page_in_chinese_has_no_english_left(template: str) -> None:
    with translation.override("zh-hans"):
        page = engines["django"].get_template(template).render({"hours": 24})
    shown = re.sub(r"<(script|style|pre)\b.*?</\1>|<[^>]+>", " ", page, flags=re.DOTALL)
    words = set(re.findall(r"[A-Za-z]{3,}", shown)) - {"MemOS", "Web", "English", "Cookie"}
    assert words == set()
