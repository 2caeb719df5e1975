"""A journey: expired, archived and deleted memories are listed, opened, and brought back together."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import memory_add
from tests.browser.looks import looked_at
from tests.browser.visit import submit
from tests.harness.product import RunningServer, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.full]
TAG = "weir"
ADDRESS = f"/memories/?inactive=true&tags={TAG}"


def test_inactive_memories_are_opened_and_brought_back_together(server: RunningServer, page: Page) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=2)
    memory_add(server, content="The weir is closed on Mondays.", tags=[TAG], expires_at=soon.isoformat())
    archived = memory_add(server, content="The weir was built in 1874.", tags=[TAG])
    deleted = memory_add(server, content="The weir has a fish ladder.", tags=[TAG])
    for address, action in ((archived, "Archive"), (deleted, "Delete")):
        page.goto(address)
        page.get_by_role("button", name=f"{action}…").click()
        if action == "Archive":
            page.get_by_label("Reason").fill("Old news.")
        submit(page.get_by_role("button", name=f"{action} 1"))

    def count_rows() -> int:
        page.goto(ADDRESS)
        return page.locator("#rows tr[data-id]").count()

    wait_until(lambda: count_rows() == 3, seconds=20)
    expect(page.get_by_role("heading", name="Not active")).to_be_visible()
    rows = page.locator("#rows")
    for words in ("Expired", "Archived", "Old news.", "Deleted", "Restorable until"):
        expect(rows).to_contain_text(words)
    assert looked_at(page) == []

    page.set_viewport_size({"width": 1280, "height": 800})
    for words in ("Expired", "Old news.", "Restorable until"):
        expect(rows.get_by_text(words).first).to_be_visible()
    rows.get_by_text("The weir has a fish ladder.").click()
    expect(page.locator("#reader")).to_contain_text("The weir has a fish ladder.")
    expect(page.locator("#reader .ending").get_by_text("Restorable until")).to_be_visible()

    page.goto(deleted)
    expect(page.locator(".ending").get_by_text("Restorable until")).to_be_visible()
    expect(page.get_by_role("button", name="Restore…")).to_be_visible()
    assert looked_at(page) == []

    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(ADDRESS)
    page.locator("#select-all").check()
    page.get_by_role("button", name="Restore…").click()
    expect(page.locator(".dryrun")).to_contain_text("3")
    assert looked_at(page) == []

    submit(page.get_by_role("button", name="Restore 3"))
    page.goto(f"/memories/?tags={TAG}")
    expect(page.locator("#rows tr[data-id]")).to_have_count(3)
    expect(page).to_have_url(re.compile(TAG))
