"""The pages of governance on a phone: nothing is cut off, and every page is reached by the menu."""

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenVisit, memory_add, post
from tests.browser.test_accessibility import findings
from tests.harness.product import RunningServer

pytestmark = [pytest.mark.browser, pytest.mark.full]

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
PAGES = (
    "/audit/",
    "/audit/?from=bogus",
    "/audit/exports/",
    "/audit/permission-changes/",
    "/audit/sinks/",
    "/holds/",
    "/access/",
    "/policies/",
    "/policies/new/quota/",
    "/quotas/",
    "/reviews/quarantine/",
    "/schedules/",
    "/settings/members/",
    "/settings/keys/",
    "/account/",
)
# What a reader would have to scroll sideways for; headings of columns are there for screen readers alone.
CUT_OFF = """() => [...document.querySelectorAll("header *, main *")]
  .filter(one => !one.closest("thead, .skip") && one.checkVisibility() && one.getClientRects().length)
  .filter(one => one.getBoundingClientRect().right > innerWidth + 1)
  .map(one => `${one.tagName} ${one.className} ${one.textContent.trim().slice(0, 40)}`)"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_cut_off(visit: OpenVisit, server: RunningServer, scheme: str) -> None:
    memory_add(server, content="Rota.", namespace="/clinic/ward-7/night-rota-of-the-intensive-care-unit")
    quota = {"holder": {"kind": "tenant"}, "limits": {"memories": 1_000_000}}
    policy = post(server, "policies/", kind="quota", name=f"Memories of the whole clinic, {scheme}", document=quota)
    look: dict[str, Any] = {**PHONE, "color_scheme": scheme}
    page = visit(**look).page
    for address in (*PAGES, f"/policies/{policy['id']}/"):
        page.goto(address)
        heading, title = page.locator("h1"), page.locator(".topbar-title").inner_text()
        box = heading.bounding_box()
        assert heading.inner_text() == title or (box and box["width"] > 1), address
        assert page.evaluate(CUT_OFF) == [], address
        assert findings(page) == [], address


def test_the_drawer_leads_to_every_page(visit: OpenVisit) -> None:
    page = visit(**PHONE).page
    page.goto("/audit/")
    drawer = page.locator("#drawer")
    expect(drawer).to_be_hidden()
    page.get_by_role("link", name="Open the menu").tap()
    expect(drawer.locator(".side-scroll")).to_have_css("overflow-y", "auto")
    for name in ("Memories", "Chat", "Review", "Audit", "Holds", "Personas", "Access", "Policies", "No purpose"):
        link = drawer.get_by_role("link", name=name, exact=True)
        link.scroll_into_view_if_needed()
        expect(link).to_be_in_viewport(ratio=1)
    assert page.evaluate(CUT_OFF) == []
    assert findings(page) == []
    drawer.get_by_role("link", name="Policies").tap()
    page.wait_for_url("**/policies/")
