"""A model's Markdown: it is drawn, and it can do nothing."""

import re
from uuid import UUID

import pytest

from tests.browser.test_stored_script import PAYLOADS
from tests.harness.cases import each_case
from vault.chat.selectors import Citation
from vault.web.answers import Piece, split_markdown
from vault.web.markdown import TAGS, markdown_html

ONE = Citation(memory_id=UUID(int=1), marker=1, score=0.9)


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**By train**, *mostly*", "<p><strong>By train</strong>, <em>mostly</em></p>\n"),
        ("- one\n- two", "<ul>\n<li>one</li>\n<li>two</li>\n</ul>\n"),
        ("one\ntwo", "<p>one<br>\ntwo</p>\n"),
        ("3. three", '<ol start="3">\n<li>three</li>\n</ol>\n'),
        ("`a < b`", "<p><code>a &lt; b</code></p>\n"),
        ("```\nx = [1]\n```", "<pre><code>x = [1]\n</code></pre>\n"),
        ("|a|b|\n|-|-|\n|1|2|", None),
    ],
)
def test_it_is_drawn(text: str, html: str | None) -> None:
    made = markdown_html(text, ())
    assert made == html if html else "<table>" in made


@each_case(
    "text",
    [
        *PAYLOADS,
        "[press](https://evil.example/)",
        "![x](https://evil.example/x.png)",
        "<https://evil.example/>",
        "[a]\n\n[a]: https://evil.example/",
        "<cite>1</cite>",
        "```html onload=x\n<script>alert(1)</script>\n```",
    ],
)
def test_nothing_in_it_can_be_pressed_fetched_or_run(text: str) -> None:
    made = markdown_html(f"{text}\n\n{text} [1]", {1})
    tags = re.findall(r"<(/?)([a-z0-9]+)([^>]*)>", made)
    assert {name for _, name, _ in tags} <= TAGS
    assert {rest for _, _, rest in tags} <= {""}
    assert made.count("<cite>") <= text.count("[1]") * 2 + 1


def test_a_marker_of_a_citation_becomes_a_chip_outside_code() -> None:
    found = list(split_markdown("**By [1]**, `[1]`, [2][1]", (ONE,)))
    assert found == [
        Piece("<p><strong>By "),
        Piece("[1]", ONE),
        Piece("</strong>, <code>[1]</code>, [2]"),
        Piece("[1]", ONE),
        Piece("</p>\n"),
    ]
