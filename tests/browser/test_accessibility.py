"""Tests of accessibility by axe: every page, light on a desktop and dark on a phone; at full size all four looks."""

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Page

from tests.browser.conftest import OpenVisit, memory_add, sign_in_link
from tests.browser.visit import ask
from tests.harness.product import RunningServer

pytestmark = [pytest.mark.browser, pytest.mark.full]

SERIOUS = {"serious", "critical"}
DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
LOOKS = [
    pytest.param({"color_scheme": "light", "viewport": DESK}, id="light-desk"),
    pytest.param({"color_scheme": "dark", "viewport": PHONE}, id="dark-phone"),
    pytest.param({"color_scheme": "dark", "viewport": DESK}, id="dark-desk", marks=pytest.mark.full),
    pytest.param({"color_scheme": "light", "viewport": PHONE}, id="light-phone", marks=pytest.mark.full),
]


def findings(page: Page) -> list[str]:
    violations = Axe().run(page).response["violations"]
    return [
        f"{page.url}: {violation['id']}: {[node['target'] for node in violation['nodes']]}"
        for violation in violations
        if violation["impact"] in SERIOUS
    ]


@pytest.mark.parametrize("look", LOOKS)
def test_no_page_has_a_serious_finding(server: RunningServer, visit: OpenVisit, look: dict[str, Any]) -> None:
    memory = memory_add(
        server, content="Ana likes to travel by train.", title="How Ana travels", tags=["ana"], metadata={"a": {"b": 1}}
    )
    page = visit(**look).page
    found: list[str] = []
    page.goto("/chat/")
    found += findings(page)
    ask(page, "How does Ana like to travel?")
    page.locator(".turn .meta").wait_for()
    conversation = page.url
    found += findings(page)
    page.locator(".chip-cite").first.click()
    page.locator("#pane #memory-title").wait_for()
    found += findings(page)
    own = ("/account/", "/account/second-factor/", "/account/organisations/")
    tenants = ("/settings/members/", "/settings/keys/", "/settings/sign-in/")
    access = (f"/access{memory.replace('memories', 'memory')}", "/access/", "/personas/", "/presets/")
    plain = (f"{conversation}rename/", f"{conversation}delete/", "/you/", "/nope/")
    for address in (memory, *plain, *own, *tenants, *access):
        page.goto(address)
        found += findings(page)
    outside = visit(signed_in=False, **look).page
    for address in ("/sign-in/", "/sign-in/home/", "/sign-in/~/forgotten/", "/reset/made-up/", sign_in_link(server)):
        outside.goto(address)
        found += findings(outside)
    outside.goto("/sign-in/made-up/")
    found += findings(outside)
    assert found == []
