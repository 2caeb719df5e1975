"""Review of personal data in a browser: the policy, the findings, and the confirmation before redaction."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenVisit, memory_add
from tests.browser.looks import looked_at
from tests.browser.visit import submit
from tests.harness.product import RunningServer

pytestmark = [pytest.mark.browser, pytest.mark.full]


def test_findings_are_shown_and_redacted_and_no_page_has_a_serious_finding(
    server: RunningServer, visit: OpenVisit
) -> None:
    memory = memory_add(server, content="Write to ana.pereira@example.org, or call +44 20 7946 0958.")
    page = visit().page
    found: list[str] = []
    for address in ("/policies/", "/policies/new/pii/", memory, "/reviews/"):
        page.goto(address)
        found += looked_at(page)
    page.locator("#waiting a", has_text="ana.pereira@example.org").click()  # on a phone the case follows its list
    found += looked_at(page)
    review = page.locator("article.review").filter(has_text="ana.pereira@example.org")
    expect(review).to_contain_text("…", use_inner_text=True)
    review.get_by_role("link", name="Redact").click()
    found += looked_at(page)
    submit(page.locator("main button[type=submit]"))
    page.goto(memory)
    expect(page.locator("main")).not_to_contain_text("ana.pereira@example.org")
    found += looked_at(page)
    assert found == []
