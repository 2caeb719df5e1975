"""Markdown files of the documentation as HTML. Links between files become links between pages."""

import re
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

LinkOf = Callable[[str], str | None]


@dataclass(frozen=True)
class Heading:
    """A heading of the second level, and its anchor in the page."""

    anchor: str
    text: str


@dataclass(frozen=True)
class Document:
    """A rendered file. title: its first heading, empty without one; lead: the text of its first paragraph."""

    title: str
    lead: str
    headings: tuple[Heading, ...]
    html: SafeString


def document_read(path: Path, link_of: LinkOf) -> Document:
    """Render the Markdown file at `path`.

    link_of: returns the address of a link's target, or None, in which case the link is shown as text.
    """
    env: MutableMapping[str, Any] = {"link_of": link_of, "anchors": set(), "headings": []}
    tokens = _MARKDOWN.parse(path.read_text(encoding="utf-8"), env)
    texts = [token for token in tokens if token.type == "inline" and token.level == 1]
    starts = [tokens[tokens.index(text) - 1] for text in texts]
    titles = [text for text, start in zip(texts, starts, strict=True) if start.tag == "h1"]
    leads = [text for text, start in zip(texts, starts, strict=True) if start.type == "paragraph_open"]
    return Document(
        title=_inline_text(titles[0]) if titles else "",
        lead=_inline_text(leads[0]) if leads else "",
        headings=tuple(env["headings"]),
        html=mark_safe(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, env)),  # of our own files
    )


def make_anchor(title: str) -> str:
    """Return the anchor of a heading, as code forges build it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _inline_text(inline: Token) -> str:
    parts = (" " if child.type == "softbreak" else child.content for child in inline.children or ())
    return "".join(parts)


def _headings_name(state: StateCore) -> None:
    for opening, inline in zip(state.tokens, state.tokens[1:], strict=False):
        if opening.type != "heading_open":
            continue
        text = _inline_text(inline)
        anchor = make_anchor(text)
        while anchor in state.env["anchors"]:
            anchor += "-"
        state.env["anchors"].add(anchor)
        opening.attrSet("id", anchor)
        if opening.tag == "h2":
            state.env["headings"].append(Heading(anchor, text))


def _links_resolve(state: StateCore) -> None:
    for inline in state.tokens:
        if inline.type == "inline" and inline.children:
            inline.children = _resolve_links(inline.children, state.env["link_of"])


def _resolve_links(children: Sequence[Token], link_of: LinkOf) -> list[Token]:
    resolved: list[Token] = []
    is_text = False  # inside a link without a page, shown as text
    for token in children:
        if token.type == "image":
            continue
        if token.type == "link_open":
            address = link_of(str(token.attrGet("href")))
            is_text = address is None
            token.attrSet("href", address or "")
        if not (is_text and token.type in {"link_open", "link_close"}):
            resolved.append(token)
    return resolved


def _render_fence(_: object, tokens: Sequence[Token], index: int, *__: Any) -> str:
    """Render a code block that can be scrolled by keyboard."""
    return f'<pre tabindex="0"><code>{escape(tokens[index].content)}</code></pre>\n'


def _render_table_open(*_: Any) -> str:
    return '<div class="tablewrap" role="region" tabindex="0" aria-label="Table"><table>\n'


def _render_table_close(*_: Any) -> str:
    return "</table></div>\n"


_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
_MARKDOWN.core.ruler.push("headings_name", _headings_name)
_MARKDOWN.core.ruler.push("links_resolve", _links_resolve)
_MARKDOWN.add_render_rule("fence", _render_fence)
_MARKDOWN.add_render_rule("table_open", _render_table_open)
_MARKDOWN.add_render_rule("table_close", _render_table_close)
