"""The pages on the way in that a plain sign-in never shows: a mailed link, the choice of an organisation, a code."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenVisit
from tests.browser.looks import looked_at
from tests.browser.test_sign_in import choose_in_account_menu
from tests.governance.accounts.people import PASSWORD, code_of
from tests.harness.product import RunningServer

pytestmark = [pytest.mark.browser, pytest.mark.full]

TOKEN = """
from governance.accounts.passwords import password_reset_token
from governance.database import no_tenant
from governance.tenants.selectors import user_id_by_email
with no_tenant():
    found = user_id_by_email("twice@example.org")
print("token:" + password_reset_token(user_id=found))
"""


@pytest.fixture
def reset_address(server: RunningServer) -> str:
    """The address of the page that sets a new password, of somebody who is in two organisations."""
    for slug in ("first", "second"):
        done = server.manage("tenant_create", slug, "--owner", "twice@example.org", "--json")
        assert done.returncode == 0, done.stderr
    done = server.manage("shell", "-c", TOKEN)
    assert done.returncode == 0, done.stderr
    return f"/reset/{done.stdout.partition('token:')[2].strip()}/"


def signing_in(page: Page) -> None:
    page.goto("/sign-in/")
    page.get_by_label("E-mail address").fill("twice@example.org")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


def test_recovery_choice_and_code_lead_in_and_have_no_serious_finding(visit: OpenVisit, reset_address: str) -> None:
    page = visit(signed_in=False).page
    page.goto(reset_address)
    found = looked_at(page)
    page.get_by_label("New password").fill(PASSWORD)
    page.locator("main button[type=submit]").click()
    page.wait_for_url("**/sign-in/~/organisation/")
    found += looked_at(page)
    page.locator("main button").first.click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    page.goto("/account/second-factor/")
    found += looked_at(page)
    secret = re.search(r"<code>([A-Z2-7]{32})</code>", page.content())
    assert secret is not None
    page.locator("#id_code").fill(code_of(secret[1], steps=-1))
    page.locator("main button[type=submit]").first.click()
    expect(page.locator("main code").first).to_have_text(re.compile(r"^\d{8}$"))
    found += looked_at(page)
    choose_in_account_menu(page, "button", "Sign out")
    signing_in(page)
    page.wait_for_url("**/sign-in/~/code/")
    found += looked_at(page)
    page.locator("#id_code").fill("000000")
    page.locator("main button[type=submit]").click()
    found += looked_at(page)
    page.locator("#id_code").fill(code_of(secret[1]))
    page.locator("main button[type=submit]").click()
    page.wait_for_url("**/sign-in/~/organisation/")
    assert found == []
