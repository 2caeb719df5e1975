"""axe finds nothing serious on any page, in either colour scheme, on a desk and on a phone."""

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Page

from tests.browser.conftest import OpenVisit, memory_add, sign_in_link
from tests.browser.visit import ask
from tests.harness.product import RunningServer

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("server")]

SERIOUS = {"serious", "critical"}
WIDTHS = {"desk": {"width": 1280, "height": 800}, "phone": {"width": 390, "height": 844}}


def findings(page: Page) -> list[str]:
    violations = Axe().run(page).response["violations"]
    return [
        f"{page.url}: {violation['id']}: {[node['target'] for node in violation['nodes']]}"
        for violation in violations
        if violation["impact"] in SERIOUS
    ]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_serious_finding(server: RunningServer, visit: OpenVisit, scheme: str, width: str) -> None:
    memory = memory_add(
        server, content="Ana likes to travel by train.", title="How Ana travels", tags=["ana"], metadata={"a": {"b": 1}}
    )
    page = visit(color_scheme=scheme, viewport=WIDTHS[width]).page
    found: list[str] = []
    page.goto("/chat/")
    found += findings(page)
    ask(page, "How does Ana like to travel?")
    page.locator(".turn .meta").wait_for()
    conversation = page.url
    found += findings(page)
    page.locator(".chip").first.click()
    page.locator("#pane #memory-title").wait_for()
    found += findings(page)
    own = ("/account/", "/account/second-factor/", "/account/organisations/")
    tenants = ("/settings/members/", "/settings/keys/", "/settings/sign-in/")
    ruling = (f"/access{memory.replace('memories', 'memory')}", "/access/", "/personas/", "/presets/")
    plain = (f"{conversation}rename/", f"{conversation}delete/", "/you/", "/nope/")
    for address in (memory, *plain, *own, *tenants, *ruling):
        page.goto(address)
        found += findings(page)
    outside = visit(signed_in=False, color_scheme=scheme, viewport=WIDTHS[width]).page
    for address in ("/sign-in/", "/sign-in/home/", "/sign-in/~/forgotten/", "/reset/made-up/", sign_in_link(server)):
        outside.goto(address)
        found += findings(outside)
    outside.goto("/sign-in/made-up/")
    found += findings(outside)
    assert found == []
