"""The pages of `/docs/`: open to everybody, linked with each other, and nothing else."""

import re
from pathlib import Path

import pytest
from django.test import Client

from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case
from vault.web.docs_markdown import document_read
from vault.web.docs_pages import ROOT, SECTIONS, neighbours, page_files

LISTED = [entry.address for section in SECTIONS for entry in section.entries]


def page_of(address: str, client: Client | None = None) -> str:
    reply = (client or Client()).get(f"/docs/{address}/" if address else "/docs/")
    assert reply.status_code == 200, address
    return reply.content.decode()


def test_every_page_opens_without_sign_in_and_every_link_leads_somewhere(world: World) -> None:
    client = Client()
    pages = {f"/docs/{address}/": page_of(address, client) for address in page_files()}
    pages["/docs/"] = page_of("", client)
    for here, page in pages.items():
        assert 'class="side-scroll"' not in page
        assert "<script>" not in page
        assert " style=" not in page
        for link in re.findall(r'href="([^"]*)"', page):
            path, _, anchor = link.partition("#")
            if path.startswith("/docs/") or not path:
                target = pages.get(path or here)
                assert target is not None, (here, link)
                assert not anchor or f'id="{anchor}"' in target, (here, link)
            else:
                assert path.startswith(("/", "https://", "http://127.0.0.1")), (here, link)


def test_every_listed_page_has_a_file_and_a_title() -> None:
    assert set(LISTED) <= set(page_files())
    assert len(LISTED) == len(set(LISTED))


def test_every_guide_is_listed() -> None:
    guides = {address for address in page_files() if address.startswith("guides/")}
    assert guides <= {entry.address for entry in SECTIONS[0].entries}


@each_case("address", ["nope", "guides", "../README", "README.md", "guides/first-memory.md", "%2e%2e/x"])
def test_unknown_page_is_404(address: str, world: World) -> None:
    assert Client().get(f"/docs/{address}/").status_code == 404


def test_page_of_a_member_has_the_side_bar(world: World) -> None:
    page = page_of("guides/first-memory", signed_in(world.bob))
    assert 'class="side-scroll"' in page
    assert 'href="/docs/"' in page


def test_sign_in_page_links_the_documentation(world: World) -> None:
    assert 'href="/docs/"' in Client().get("/sign-in/").content.decode()


def test_page_sends_the_strict_content_security_policy(world: World) -> None:
    reply = Client().get("/docs/guides/first-memory/")
    assert "'unsafe-inline'" not in reply["Content-Security-Policy"]


def test_navigation_is_chinese_and_the_text_stays_english(world: World) -> None:
    page = Client().get("/docs/guides/chat/", headers={"Accept-Language": "zh-CN"}).content.decode()
    assert ">指南</h2>" in page
    assert '<article class="docs-text" lang="en">' in page


def test_current_page_is_marked_and_its_neighbours_are_linked(world: World) -> None:
    page = page_of("guides/chat")
    assert re.search(r'href="/docs/guides/chat/"\s+aria-current="page"', page)
    before, after = neighbours("guides/chat")
    assert before is not None
    assert after is not None
    assert (before.address, after.address) == ("guides/first-memory", "guides/tenants-and-keys")
    assert neighbours("decisions/0004-outbox") == (None, None)


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>"),
        ("[there](there.md)", '<p><a href="/there/">there</a></p>'),
        ("[a script](run.sh) is", "<p>a script is</p>"),
        ("![a picture](a.webp)", "<p></p>"),
        ("```sh\na < b\n```", '<pre tabindex="0"><code>a &lt; b\n</code></pre>'),
        ("## Two words\n## Two words", '<h2 id="two-words">Two words</h2>\n<h2 id="two-words-">Two words</h2>'),
    ],
)
def test_markdown_is_rendered(markdown: str, html: str, tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text(markdown, encoding="utf-8")
    document = document_read(file, {"there.md": "/there/"}.get)
    assert document.html.strip() == html


def test_title_lead_and_headings_are_read() -> None:
    document = document_read(ROOT / "docs" / "guides" / "chat.md", lambda target: target)
    assert document.title == "Chat"
    assert document.lead.startswith("After this page you can ask questions")
    assert [heading.anchor for heading in document.headings][:2] == ["in-the-browser", "from-a-program"]
