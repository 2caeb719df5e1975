"""A person lets an application use their memory: the page of OAuth, in a browser whose policy guards its form."""

import json
import urllib.request
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenVisit
from tests.browser.looks import looked_at
from tests.harness.product import RunningServer

pytestmark = [pytest.mark.browser, pytest.mark.full]

CALLBACK = "http://127.0.0.1:33418/callback"


def authorization_address(server: RunningServer) -> str:
    sent = {"client_name": "An editor", "redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none"}
    request = urllib.request.Request(
        f"{server.base_url}/oauth/register", json.dumps(sent).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        client_id = json.load(answer)["client_id"]
    asked = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": CALLBACK,
        "code_challenge": "c" * 43,
        "code_challenge_method": "S256",
        "state": "of-the-host",
    }
    return f"/oauth/authorize?{urlencode(asked)}"


def test_consent_page_has_no_serious_finding_and_leads_back_to_the_application(
    visit: OpenVisit, server: RunningServer
) -> None:
    page = visit().page
    page.route(f"{CALLBACK}**", lambda route: route.fulfill(body="done", content_type="text/plain"))
    page.goto(authorization_address(server))
    expect(page.get_by_role("heading", name="Connect An editor?")).to_be_visible()
    expect(page.get_by_text("127.0.0.1:33418")).to_be_visible()
    assert looked_at(page) == []
    page.get_by_label("add, change and delete memories").uncheck()
    page.get_by_role("button", name="Allow").click()
    page.wait_for_url(f"{CALLBACK}**")
    answer = parse_qs(urlsplit(page.url).query)
    assert (answer["state"], len(answer["code"])) == (["of-the-host"], 1)
    page.goto("/account/")
    expect(page.locator("#keys-part").get_by_role("row", name="An editor").first).to_contain_text("memories:read")
    assert looked_at(page) == []
