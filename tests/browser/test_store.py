"""A pack goes from one organisation to another, in two browsers: made, checked, published, found, tried, subscribed,
asked, upgraded, read until the quota is used up, yanked, revoked. Each change arrives within a minute."""

import json
import re
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import OpenVisit, SignIn, memory_add
from tests.browser.looks import WIDTHS, looked_at
from tests.browser.visit import COUNT_CLICKS, ask, count_clicks
from tests.harness.product import RunningServer, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.full]

BUILD_SECONDS = 30.0
REACH_SECONDS = 60.0  # within which a yank and a revocation reach every subscriber
QUOTA = 20
QUESTION = "Where does the heron nest?"
README = "## Contents\n\nWhere **herons** nest, fish and sleep."


def newcomer(chromium: Browser, server: RunningServer) -> Page:
    """A signed-in window of the owner of another organisation."""
    slug = f"mill-{uuid4().hex[:6]}"
    email = f"owner@{slug}.example"
    made = server.manage("tenant_create", slug, "--name", "The mill", "--owner", email, "--json")
    assert made.returncode == 0, made.stderr
    linked = server.manage("sign_in_link", "--tenant", slug, "--email", email, "--json")
    assert linked.returncode == 0, linked.stderr
    context = chromium.new_context(base_url=server.base_url, locale="en-GB")
    context.add_init_script(COUNT_CLICKS)
    page = context.new_page()
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


def shown_soon(page: Page, address: str, text: str, *, seconds: float = BUILD_SECONDS) -> None:
    """Load `address` until `text` stands there, which another process has to bring."""

    def is_shown() -> bool:
        page.goto(address)
        return text in page.locator("main").inner_text()

    wait_until(is_shown, seconds=seconds)


def selection_make(page: Page, count: int) -> None:
    """Choose the memories about herons for a pack."""
    page.set_viewport_size(WIDTHS["desk"])  # `looked_at` ends on a phone, whose rows have no boxes
    page.goto("/memories/?tags=heron")
    for box in page.locator('input[name="id"]').all():
        box.check()
    page.locator(".bulkbar").get_by_text("More").click()
    page.get_by_role("button", name="Make a pack…").click()
    expect(page.get_by_text(f"{count} memories are chosen.")).to_be_visible()


def version_build(page: Page) -> list[str]:
    """Build a version once its scan passes, and open the form that offers it."""
    expect(page.get_by_role("button", name="Build the version")).to_be_disabled()
    found = looked_at(page)
    page.get_by_label("Memories with personal data or secrets").select_option("redact")
    page.get_by_role("button", name="Check again").click()
    expect(page.locator("main")).not_to_contain_text("mia@mill.example")
    page.get_by_role("button", name="Build the version").click()
    publish = page.get_by_role("link", name="Publish…").first
    expect(publish).to_be_visible(timeout=BUILD_SECONDS * 1000)  # the page looks again by itself
    found += looked_at(page)
    publish.click()
    page.get_by_label("Who may find it").select_option("installation")  # the narrowest is chosen before
    page.get_by_label("Reads of a subscriber").fill(str(QUOTA))
    return found + looked_at(page)


def version_offer(page: Page, second: Page, number: str) -> None:
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_text("waits for an approval", exact=True)).to_be_visible()
    offer_approve(second, f"Publish Herons of the mill {number}?")
    page.reload()
    expect(page.get_by_text("offered now")).to_be_visible()


def pack_publish(page: Page, second: Page, name: str) -> list[str]:
    """Made from a selection, stopped by its scan, mended, approved by a second member."""
    selection_make(page, 3)
    found = looked_at(page)
    page.get_by_label("Title").fill("Herons of the mill")
    page.get_by_label("Short name").fill(name)
    page.get_by_label("In one sentence").fill("Where herons nest, fish and sleep.")
    page.get_by_label("Topic").select_option("learning")
    page.get_by_label("Readme").fill(README)
    page.get_by_role("button", name="Next: memories").click()
    found += version_build(page)
    version_offer(page, second, "1.0.0")
    page.goto("/store/own/")
    expect(page.locator("main")).to_contain_text("Herons of the mill")
    return found + looked_at(page)


def pack_try(other: Page) -> list[str]:
    """Found by its words, and tried with the last question of the chat."""
    other.goto("/chat/")
    ask(other, QUESTION)
    expect(other.locator(".turn .why-link")).to_be_visible()  # the turn is stored
    other.goto("/store/")
    other.get_by_label("Search packs").fill("herons mill")
    card = other.get_by_role("link", name="Herons of the mill")
    expect(card).to_be_visible()
    found = looked_at(other)
    card.click()
    expect(other.get_by_text("Signature verified")).to_be_visible()
    expect(other.locator("main")).to_contain_text(f"{QUOTA} a month")
    expect(other.locator("main")).not_to_contain_text("mia@mill.example")
    found += looked_at(other)
    other.get_by_role("link", name="Try with my questions").click()
    expect(other.get_by_role("heading", name=QUESTION)).to_be_visible()
    expect(other.get_by_text("The pack would add")).to_be_visible()
    return found + looked_at(other)


def pack_subscribe(other: Page) -> tuple[str, list[str]]:
    """Subscribed, mounted on the conversation, asked there. Returns the address of the subscription."""
    other.get_by_role("link", name="Terms and subscription").click()
    other.get_by_label("I read the terms, and accept them").check()
    other.get_by_role("button", name="Subscribe", exact=True).click()
    expect(other.get_by_text("No chat reads the pack yet.")).to_be_visible(timeout=BUILD_SECONDS * 1000)
    mine = other.url
    found = looked_at(other)
    conversation = other.locator("#place optgroup").last.locator("option").first
    other.get_by_label("Mount on").select_option(conversation.get_attribute("value"))
    other.get_by_role("button", name="Mount", exact=True).click()
    other.get_by_role("link", name="A conversation").click()
    ask(other, QUESTION)
    expect(other.get_by_text("from the pack")).to_be_visible()
    answer = other.url
    assert count_reads(other, mine) == 2, "the answer, and the stored turn that takes its place"
    other.goto(answer)
    found += looked_at(other)
    return mine, found


def count_reads(other: Page, mine: str) -> int:
    """Return the reads in this period, as the page of the subscription says."""
    other.goto(mine)
    used = re.search(rf"(\d+) of {QUOTA}\b", other.locator("main").inner_text())
    assert used is not None
    return int(used[1])


def pack_upgrade(other: Page, mine: str) -> list[str]:
    """Compared memory by memory, then installed."""
    shown_soon(other, "/store/installed/", "Compare 1.1.0")
    found = looked_at(other)
    other.get_by_role("link", name="Compare 1.1.0").click()
    expect(other.locator("ins").filter(has_text="The heron wades in the lake.")).to_be_visible()
    found += looked_at(other)
    other.get_by_role("button", name="Install 1.1.0").click()
    shown_soon(other, mine, "4 memories")
    return found


def quota_exhaust(other: Page, mine: str) -> None:
    """Exactly the reads that are left show the memories, and the next one shows none."""
    listed = other.locator("main").get_by_text("The heron wades in the lake.")
    for _number in range(QUOTA - count_reads(other, mine)):
        other.goto(mine)
        other.get_by_role("link", name="Show the memories of the pack").click()
        expect(listed).to_have_count(1)
    other.reload()
    expect(listed).to_have_count(0)
    other.goto(mine)
    expect(other.get_by_text("No reads are left in this period.")).to_be_visible()
    expect(other.get_by_text(f"{QUOTA} of {QUOTA}")).to_be_visible()


def version_yank(page: Page, reason: str) -> None:
    """The publisher withdraws the version that the subscriber has."""
    page.goto("/store/own/")
    page.get_by_role("link", name="Herons of the mill").first.click()
    row = page.locator("li.stack", has_text="1.1.0")
    row.get_by_text("Withdraw…").click()
    row.get_by_label("Reason, which readers see").fill(reason)
    row.get_by_role("button", name="Yank: nobody finds it any more").click()
    expect(row.get_by_text(reason)).to_be_visible()


def contract_revoke(page: Page) -> list[str]:
    """The publisher has the same count of reads, and ends the contract."""
    shown_soon(page, "/store/contracts/", f"{QUOTA} of {QUOTA}")
    found = looked_at(page)
    page.get_by_role("link", name="The mill").click()
    expect(page.get_by_role("row")).to_have_count(QUOTA + 1)
    found += looked_at(page)
    page.get_by_label("Reason, which the subscriber reads").fill("Not paid.")
    page.get_by_role("button", name="Revoke the contract").click()
    expect(page.get_by_text("Revoked by the publisher").first).to_be_visible()
    page.goto("/audit/?verb=contract.revoked")
    expect(page.locator("#entries").get_by_text("revoked").first).to_be_visible()
    return found


def test_pack_travels_to_another_organisation_and_leaves_nothing_when_revoked(
    chromium: Browser, visit: OpenVisit, server: RunningServer, colleague: SignIn
) -> None:
    for text in ("The heron nests by the mill.", "The heron fishes at dawn.", "Write to mia@mill.example first."):
        memory_add(server, content=text, tags=["heron"])
    name = f"herons-{uuid4().hex[:6]}"
    second = colleague("sam", "admin")  # a second admin, so that what leaves the organisation waits for an approval
    page = visit().page
    found = pack_publish(page, second, name)
    other = newcomer(chromium, server)
    found += pack_try(other)
    mine, complaints = pack_subscribe(other)
    memory_add(server, content="The heron wades in the lake.", tags=["heron"])
    selection_make(page, 4)
    page.get_by_role("link", name="Herons of the mill").click()
    found += complaints + version_build(page)
    version_offer(page, second, "1.1.0")
    found += pack_upgrade(other, mine)
    assert count_clicks(page) <= 22, "two versions made, scanned, mended and offered"
    assert count_clicks(other) <= 11, "signed in, tried, subscribed and upgraded"
    quota_exhaust(other, mine)
    version_yank(page, "A heron was mistaken.")
    shown_soon(other, mine, "3 memories", seconds=REACH_SECONDS)  # the version before has taken its place
    found += contract_revoke(page)
    shown_soon(other, mine, "Revoked by the publisher", seconds=REACH_SECONDS)
    shown_soon(other, mine, "0 memories")
    expect(other.get_by_text("Not paid.")).to_be_visible()
    other.goto("/audit/?verb=subscription.revoked")
    expect(other.locator("#entries").get_by_text("revoked").first).to_be_visible()
    other.context.close()
    assert found == []
