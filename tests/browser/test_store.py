"""A pack goes from one organisation to another, in two browsers: made, checked, published, found."""

import json
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import OpenVisit, SignIn, memory_add
from tests.browser.looks import looked_at
from tests.harness.product import RunningServer

pytestmark = [pytest.mark.browser, pytest.mark.long]

BUILD_SECONDS = 30.0
README = "## Contents\n\nWhere **herons** nest, fish and sleep."


def newcomer(chromium: Browser, server: RunningServer) -> Page:
    """A signed-in window of the owner of another organisation."""
    slug = f"mill-{uuid4().hex[:6]}"
    email = f"owner@{slug}.example"
    made = server.manage("tenant_create", slug, "--name", "The mill", "--owner", email, "--json")
    assert made.returncode == 0, made.stderr
    linked = server.manage("sign_in_link", "--tenant", slug, "--email", email, "--json")
    assert linked.returncode == 0, linked.stderr
    page = chromium.new_context(base_url=server.base_url, locale="en-GB").new_page()
    page.goto(json.loads(linked.stdout)["sign_in_link"])
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/overview/")
    return page


def offer_approve(page: Page, title: str) -> None:
    """Approve a publication that waits, and see it leave the list."""
    page.goto("/reviews/")
    waiting = page.get_by_role("article").filter(has_text=title)
    waiting.get_by_role("button", name="Approve").click()
    expect(waiting).to_have_count(0)


def test_pack_made_from_a_selection_reaches_another_organisation(
    chromium: Browser, visit: OpenVisit, server: RunningServer, colleague: SignIn
) -> None:
    for text in ("The heron nests by the mill.", "The heron fishes at dawn.", "Write to mia@mill.example first."):
        memory_add(server, content=text, tags=["heron"])
    name = f"herons-{uuid4().hex[:6]}"
    second = colleague("sam", "admin")  # a second admin, so that what leaves the organisation waits for an approval
    page = visit().page
    page.goto("/memories/?tag=heron")
    for box in page.locator('input[name="id"]').all():
        box.check()
    page.get_by_role("button", name="Make a pack…").click()
    expect(page.get_by_text("3 memories are chosen.")).to_be_visible()
    found = looked_at(page)
    page.get_by_label("Title").fill("Herons of the mill")
    page.get_by_label("Short name").fill(name)
    page.get_by_label("In one sentence").fill("Where herons nest, fish and sleep.")
    page.get_by_label("Topic").select_option("learning")
    page.get_by_label("Readme").fill(README)
    page.get_by_role("button", name="Next: memories").click()
    expect(page.get_by_role("button", name="Build the version")).to_be_disabled()
    found += looked_at(page)
    page.get_by_label("Memories with personal data or secrets").select_option("redact")
    page.get_by_role("button", name="Check again").click()
    expect(page.locator("main")).not_to_contain_text("mia@mill.example")
    page.get_by_role("button", name="Build the version").click()
    publish = page.get_by_role("link", name="Publish…")
    expect(publish).to_be_visible(timeout=BUILD_SECONDS * 1000)  # the page looks again by itself
    found += looked_at(page)
    publish.click()
    page.get_by_label("Reads of a subscriber").fill("100")
    found += looked_at(page)
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_text("waits for an approval", exact=True)).to_be_visible()
    offer_approve(second, "Publish Herons of the mill 1.0.0?")
    page.reload()
    expect(page.get_by_text("offered now")).to_be_visible()
    page.goto("/store/own/")
    expect(page.locator("main")).to_contain_text("Herons of the mill")
    found += looked_at(page)
    other = newcomer(chromium, server)
    other.goto("/store/")
    other.get_by_label("Search packs").fill("herons mill")
    card = other.get_by_role("link", name="Herons of the mill")
    expect(card).to_be_visible()
    found += looked_at(other)
    card.click()
    expect(other.get_by_text("Signature verified")).to_be_visible()
    expect(other.locator("main")).to_contain_text("100 a month")
    expect(other.locator("main")).not_to_contain_text("mia@mill.example")
    found += looked_at(other)
    other.context.close()
    assert found == []
