"""A model's Markdown as safe HTML, without links, pictures and raw HTML. The result is sanitised."""

import re
from collections.abc import Collection
from html import escape
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from vault.cubes.passages import MARKER

CITE = re.compile(r"<cite>(\d{1,2})</cite>")
TAGS = {
    *("p", "br", "hr", "strong", "em", "s", "code", "pre", "blockquote", "ul", "ol", "li", "cite"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
}
# An address in the answer must not become a link or an image, because it may come from a hostile memory.
LONGEST_FORMATTED = 10_000  # characters; a longer answer is shown as plain text, which costs a tenth
LEFT_AS_TEXT = ["link", "image", "autolink", "reference", "html_inline", "html_block"]


def markdown_html(text: str, markers: Collection[int]) -> str:
    """Return `text` as clean HTML; `[n]` outside code becomes `<cite>n</cite>` for each n in `markers`."""
    is_long = len(text) > LONGEST_FORMATTED
    made = _plain_html(text, markers) if is_long else _MARKDOWN.render(text, {"markers": markers})
    return nh3.clean(made, tags=TAGS, attributes={"ol": {"start"}}, link_rel=None)


def _plain_html(text: str, markers: Collection[int]) -> str:
    """Return `text` as one paragraph with its line breaks; its markers become cites."""

    def cite(found: re.Match[str]) -> str:
        return f"<cite>{int(found[1])}</cite>" if int(found[1]) in markers else found[0]

    return f"<p>{MARKER.sub(cite, escape(text)).replace(chr(10), '<br>')}</p>"


def _cut_citations(state: StateCore) -> None:
    for token in state.tokens:
        if token.type == "inline" and token.children:
            token.children = [part for child in token.children for part in _split_token(child, state.env["markers"])]


def _split_token(token: Token, markers: Collection[int]) -> list[Token]:
    if token.type != "text":
        return [token]
    cut: list[Token] = []
    for index, part in enumerate(MARKER.split(token.content)):
        known = index % 2 == 1 and int(part) in markers
        text = part if known or index % 2 == 0 else f"[{part}]"
        cut.append(Token("cite" if known else "text", "", 0, content=text))
    return cut


def _render_citation(_: object, tokens: list[Token], index: int, *__: Any) -> str:
    return f"<cite>{int(tokens[index].content)}</cite>"


_MARKDOWN = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
_MARKDOWN.disable(LEFT_AS_TEXT)
_MARKDOWN.core.ruler.push("cite", _cut_citations)
_MARKDOWN.add_render_rule("cite", _render_citation)
