"""Parts of pages that are loaded again by themselves keep what somebody is typing."""

import re
from pathlib import Path

import pytest

TEMPLATES = Path(__file__).parents[3] / "templates"
POLLED = sorted(path for path in TEMPLATES.rglob("*.html") if 'hx-trigger="every' in path.read_text(encoding="utf-8"))
BEGIN = re.compile(r'^( *)<(\w+)\b[^<]*hx-trigger="every(.*)', re.MULTILINE | re.DOTALL)
TYPED = re.compile(r'<(?:select|textarea|input(?![^>]*type="(?:hidden|submit)"))|components/_fields?\.html')


@pytest.mark.parametrize("path", POLLED, ids=[path.stem for path in POLLED])
def test_form_in_a_part_that_is_loaded_again_is_preserved(path: Path) -> None:
    begin = BEGIN.search(path.read_text(encoding="utf-8"))
    assert begin is not None
    part = begin[3].split(f"\n{begin[1]}</{begin[2]}>")[0]
    for form in re.finditer(r"<form\b([^>]*)>(.*?)</form>", part, re.DOTALL):
        around = part[: form.start()].rpartition("<details")[2]
        is_within = "hx-preserve" in around and "</details>" not in around
        assert not TYPED.search(form[2]) or "hx-preserve" in form[1] or is_within, form[1]
