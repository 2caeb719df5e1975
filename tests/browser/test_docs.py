"""The documentation in a browser: readable in every look, and usable without scripts."""

import pytest

from tests.browser.conftest import OpenVisit
from tests.browser.looks import looked_at

pytestmark = [pytest.mark.browser, pytest.mark.full]

ADDRESSES = ("/docs/", "/docs/guides/policies/", "/docs/audit/", "/docs/rest-api/", "/docs/readme/")


def test_no_page_of_the_documentation_has_a_serious_finding(visit: OpenVisit) -> None:
    page = visit(signed_in=False).page
    findings: list[str] = []
    for address in ADDRESSES:
        page.goto(address)
        findings += looked_at(page)
    assert findings == []


def test_reader_without_scripts_goes_from_the_sign_in_page_to_a_guide_on_a_phone(visit: OpenVisit) -> None:
    page = visit(signed_in=False, java_script_enabled=False, viewport={"width": 390, "height": 844}).page
    page.goto("/sign-in/")
    page.get_by_role("link", name="Documentation").click()
    page.get_by_role("link", name="First memory").click()
    page.get_by_role("heading", name="First memory", level=1).wait_for()
    page.locator("summary", has_text="Documentation").click()
    page.get_by_role("link", name="Share a pack").click()
    page.get_by_role("heading", name="Share a pack", level=1).wait_for()


def test_member_opens_a_guide_from_the_side_bar(visit: OpenVisit) -> None:
    page = visit().page
    page.goto("/overview/")
    page.get_by_role("link", name="Documentation").click()
    page.get_by_role("main").get_by_role("link", name="Chat").click()
    page.get_by_role("heading", name="Chat", level=1).wait_for()
    page.get_by_role("link", name="Tenants and keys").last.click()
    page.get_by_role("heading", name="Tenants and keys", level=1).wait_for()
