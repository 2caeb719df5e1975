"""Tests of stored script: pages show every memory as text, run nothing, fetch nothing and never violate the policy."""

import json
import re
import urllib.request
from collections.abc import Mapping
from string import Formatter
from typing import Any
from urllib.parse import quote, urlsplit
from uuid import uuid4

import pytest
from playwright.sync_api import Page, Request, expect

from scripts.screenshots import PAGES
from tests.browser.conftest import memory_add
from tests.browser.test_every_page import MORE
from tests.browser.visit import ask, submit
from tests.harness.product import RunningServer

pytestmark = [pytest.mark.browser, pytest.mark.full]

CATCH = "window.executed=1"
PAYLOADS = [
    f"<script>{CATCH}</script>",
    f"<img src=x onerror={CATCH}>",
    f"<svg/onload={CATCH}>",
    f"<svg><script>{CATCH}</script></svg>",
    f"<svg><animate onbegin={CATCH} attributeName=x dur=1s>",
    f"<a href=javascript:{CATCH}>press</a>",
    f"<iframe srcdoc='<script>parent.{CATCH}</script>'></iframe>",
    f"<details open ontoggle={CATCH}>",
    f"<input autofocus onfocus={CATCH}>",
    f"<body onload={CATCH}>",
    f"<math><mtext><img src onerror={CATCH}></mtext></math>",
    f'"><script>{CATCH}</script>',
    f"' autofocus onfocus={CATCH} x='",
    f"</pre></textarea></title></script><script>{CATCH}</script>",
    f"<!--><script>{CATCH}</script>-->",
    f"<![CDATA[<script>{CATCH}</script>]]>",
    "<div hx-get=/attacked hx-trigger=load>",
    "<div data-hx-get=/attacked data-hx-trigger=load>",
    f"<div hx-on:htmx:load={CATCH}>",
    f"<div hx-on::load={CATCH}>",
    "<div hx-post=/attacked hx-trigger='every 10ms'>",
    "<div hx-ext=eval hx-vals='js:{a:executed=1}' hx-get=/attacked hx-trigger=revealed>",
    "<form action=/attacked method=post><button autofocus>press</button></form>",
    "<meta http-equiv=refresh content='0;url=/attacked'>",
    "<base href=/attacked/>",
    "<link rel=stylesheet href=/attacked>",
    "<object data=/attacked></object>",
    "<style>@import '/attacked'</style>",
    "<video><source src=/attacked onerror=window.executed=1></video>",
    "{{ request }}{% load i18n %}{% debug %}",
    "${window.executed=1}`${window.executed=1}`",
    "[1](javascript:window.executed=1) ![x](/attacked) [1]",
]

EVERYWHERE = "".join(PAYLOADS[number] for number in (0, 1, 11, 12, 16, 20)) + PAYLOADS[-3]


OF_A_SUBSCRIPTION = {"pack", "subscription", "pack_memory"}  # this tenant has none


def names_in(address: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(address) if name}


@pytest.fixture(scope="module")
def poisoned_pages(server: RunningServer) -> list[str]:
    """Pages of memories that hold each payload in every field that a caller fills."""
    return [
        memory_add(
            server,
            content=f"Poison {number}: {payload}",
            title=payload,
            tags=[payload[:100]],
            metadata={payload[:60]: payload, "nested": {payload[:60]: [payload]}},
            session_id=payload[:100],
        )
        for number, payload in enumerate(PAYLOADS)
    ]


def post_object(server: RunningServer, address: str, body: Mapping[str, object]) -> dict[str, Any]:
    """Store something through the API; its reply. Raises HTTPError."""
    request = urllib.request.Request(
        f"{server.base_url}/api/v1/{address}",
        data=json.dumps(dict(body)).encode(),
        headers={"Authorization": f"Bearer {server.first_run['api_key']}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        made: dict[str, Any] = json.load(answer)
        return made


@pytest.fixture(scope="module")
def addresses(server: RunningServer) -> list[str]:
    """Every page about a tenant whose names, titles, reasons and references are payloads."""
    text, place = EVERYWHERE, f"/p{uuid4().hex[:6]}"
    memory = memory_add(
        server, content=f"Write to mallory@example.org {text}", title=text, namespace=place, tags=["<b>"]
    )
    id = memory.split("/")[2]
    subject = post_object(server, "subjects/", {"reference": text[:200]})["id"]
    post_object(server, f"subjects/{subject}/assign/", {"ids": [id]})
    policy = {"kind": "retention", "document": {"where": {"tags": [text[:100]]}, "ttl_seconds": 10**8}}
    policy_id = post_object(server, "policies/", policy | {"name": text[:100], "reason": text})["id"]
    persona = post_object(server, "personas/", {"name": f"P {uuid4().hex[:6]}", "attributes": {"tone": text}})["id"]
    template = {"name": f"t{uuid4().hex[:6]}", "role": "viewer", "persona_attributes": {"title": text}}
    post_object(server, "role-templates/", template)
    post_object(server, "api-keys/", {"name": text[:100], "scopes": ["memories:read"]})
    post_object(server, "views/", {"name": text[:60], "query": f"q={quote(text)}"})
    conversation = post_object(server, "conversations/", {"title": text[:200]})["id"]
    post_object(server, f"conversations/{conversation}/turns/", {"content": f"Remember that {text}"})
    tool = {"name": "book", "arguments": {"to": text}, "outcome": "failed", "error": text}
    post_object(server, "memories/tool-calls/", tool)
    post_object(server, f"memories/{id}/feedback/", {"kind": "outdated", "note": text[:200]})
    hold = post_object(server, "holds/", {"reason": text, "subject": text[:200]})["id"]
    found = {"memory": id, "subject": subject, "hold": hold, "policy": policy_id, "persona": persona}
    found |= {"conversation": conversation, "namespace": _namespace(server, place)}
    addresses = [
        address for address in (*PAGES.values(), *MORE) if not OF_A_SUBSCRIPTION.intersection(names_in(address))
    ]
    return [address.format(**found) for address in addresses]


def _namespace(server: RunningServer, path: str) -> str:
    request = urllib.request.Request(
        f"{server.base_url}/api/v1/namespaces/?page_size=200",
        headers={"Authorization": f"Bearer {server.first_run['api_key']}"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        rows = json.load(answer)["results"]
    return str(next(row["id"] for row in rows if row["path"] == path))


def watch(page: Page) -> list[str]:
    """Collects the requests that only a payload would make."""
    attacks: list[str] = []

    def note(request: Request) -> None:
        if "attacked" in urlsplit(request.url).path:
            attacks.append(request.url)

    page.on("request", note)
    return attacks


def is_script_executed(page: Page) -> bool:
    return bool(page.evaluate("'executed' in window"))


def test_nothing_runs_on_the_page_of_a_memory(page: Page, poisoned_pages: list[str]) -> None:
    attacks = watch(page)
    for address, payload in zip(poisoned_pages, PAYLOADS, strict=True):
        page.goto(address)
        expect(page.locator(".content").first).to_contain_text(payload)
        assert not is_script_executed(page), payload
        page.goto(f"{address}edit/")
        expect(page.locator("#edit-content")).to_have_value(re.compile(r"Poison \d+: "))
        assert not is_script_executed(page), payload
    assert attacks == []


def test_nothing_runs_in_the_list_its_facets_its_pane_and_its_views(page: Page, poisoned_pages: list[str]) -> None:
    assert poisoned_pages
    attacks = watch(page)
    for number in range(0, len(PAYLOADS), 8):
        page.goto(f"/memories/?q={quote(PAYLOADS[number])}&tags={quote(PAYLOADS[number][:100])}")
        expect(page.locator("#find")).to_have_value(PAYLOADS[number])
        assert not is_script_executed(page), PAYLOADS[number]
    page.goto("/memories/")
    page.locator("details.facet").evaluate_all("all => all.forEach(one => { one.open = true; })")
    page.locator("#rows .memory-text").first.wait_for()
    for row in page.locator("#rows tr[data-id] .memory-text").all()[:10]:
        row.click()
        expect(page.locator("#reader .reader-title")).to_be_visible()
        assert not is_script_executed(page)
    page.locator(".views summary").click()
    page.get_by_label("Name of the view").fill(PAYLOADS[0][:60])
    submit(page.get_by_role("button", name="Save", exact=True).last)
    page.goto("/memories/")
    expect(page.locator(".views-tab", has_text=PAYLOADS[0][:60])).to_be_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type("Poison")
    expect(page.locator("#palette-memory-1")).to_be_visible()
    assert not is_script_executed(page)
    assert attacks == []


def test_nothing_runs_in_the_pane_which_htmx_fills(page: Page, poisoned_pages: list[str]) -> None:
    attacks = watch(page)
    page.goto("/chat/")
    for address, payload in zip(poisoned_pages, PAYLOADS, strict=True):
        page.evaluate(f"htmx.ajax('GET', {json.dumps(address)}, '#pane-body')")
        expect(page.locator("#pane .content").first).to_contain_text(payload)
        assert not is_script_executed(page), payload
    assert attacks == []


def test_nothing_runs_in_a_chat_neither_while_it_comes_nor_later(page: Page, poisoned_pages: list[str]) -> None:
    assert poisoned_pages
    attacks = watch(page)
    page.goto("/chat/")
    for number, payload in enumerate(PAYLOADS):
        ask(page, f"What is Poison {number}: {payload}?")
        expect(page.locator(".turn .meta")).to_have_count(number + 1)
        assert not is_script_executed(page), payload
    page.reload()
    expect(page.locator(".turn").first).to_be_attached()
    assert not is_script_executed(page)
    assert attacks == []


def test_nothing_runs_on_any_page_whatever_its_rows_are_called(page: Page, addresses: list[str]) -> None:
    attacks = watch(page)
    for address in addresses:
        page.goto(address)
        page.wait_for_load_state()
        assert not is_script_executed(page), address
    assert attacks == []
