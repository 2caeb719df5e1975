"""Journeys from the overview to a goal by clicks alone, each with the most clicks that it may take."""

import json
import re
import time
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from playwright.sync_api import FilePayload, Page, expect

from tests.browser.conftest import OpenVisit, memory_add
from tests.browser.test_journeys import api
from tests.browser.test_sign_in import choose_in_account_menu, mailed_link
from tests.browser.visit import count_clicks, submit
from tests.governance.accounts.people import code_of
from tests.harness.product import RunningServer, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.full]
JOB_SECONDS = 30.0


def go(page: Page, name: str) -> None:
    """Open a page by the side bar."""
    page.locator(".side").get_by_role("link", name=name, exact=True).click()


def await_next_second() -> datetime:
    """Return the present second, once it is over: the time machine tells seconds apart."""
    second = datetime.now(UTC).replace(microsecond=0)
    wait_until(lambda: time.time() > second.timestamp() + 1, seconds=5)
    return second


def test_time_machine_brings_a_namespace_back(page: Page, server: RunningServer) -> None:
    place = f"/clock-{uuid4().hex[:6]}"
    memory = memory_add(server, content="The clock strikes nine.", namespace=place)
    then = await_next_second() + timedelta(seconds=1)
    await_next_second()
    edited = {"content": "The clock is broken."}
    assert api(server, "PATCH", memory.strip("/") + "/", edited, headers={"If-Match": '"1"'})[0] == 200
    page.goto("/overview/")
    go(page, "Namespaces")
    page.get_by_role("link", name=place).click()
    page.get_by_role("link", name="Time machine").click()
    page.get_by_label("As of").fill(then.replace(tzinfo=None).isoformat())
    page.get_by_role("button", name="Look").click()
    expect(page.locator(".past-words").first).to_contain_text("The clock strikes nine.")
    page.get_by_role("button", name="What would change?").click()
    expect(page.get_by_role("status")).to_contain_text("1 memory would change")
    submit(page.get_by_role("button", name="Restore", exact=True))

    def is_back() -> bool:
        return bool(api(server, "GET", memory.strip("/") + "/")[1]["content"] == "The clock strikes nine.")

    wait_until(is_back, seconds=JOB_SECONDS)
    assert count_clicks(page) <= 6


def test_retention_is_set_swept_and_an_expired_memory_brought_back(page: Page, server: RunningServer) -> None:
    tag = f"rota-{uuid4().hex[:6]}"
    soon = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
    memory = memory_add(server, content="The rota of May.", namespace="/rota", tags=[tag], expires_at=soon)
    page.goto("/overview/")
    go(page, "Policies")
    page.get_by_text("New policy").click()
    page.get_by_role("link", name=re.compile("^Retention")).click()
    page.get_by_label("Name", exact=True).fill(f"Rotas {tag}")
    page.get_by_label("Namespace").fill("/rota")
    page.get_by_label("Days in which a deleted memory can be restored").fill("5")
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url(re.compile(r"/policies/[0-9a-f-]{36}/"))
    go(page, "Schedules")
    submit(page.get_by_role("button", name="Run now: Sweep memories"))
    expect(page.locator("#job")).to_contain_text("1 expired", timeout=JOB_SECONDS * 1000)
    go(page, "Memories")
    page.get_by_role("link", name="Not active").click()
    page.locator("#rows tr", has_text="The rota of May.").locator("input[type=checkbox]").check()
    page.get_by_role("button", name="Restore…").click()
    submit(page.get_by_role("button", name="Restore 1"))
    status, found = api(server, "GET", memory.strip("/") + "/")
    assert (status, found["content"]) == (200, "The rota of May.")
    assert count_clicks(page) <= 11


def test_invited_member_joins_and_sets_up_a_second_factor(visit: OpenVisit, server: RunningServer) -> None:
    email, admin = f"vera-{uuid4().hex[:6]}@example.org", visit().page
    admin.goto("/overview/")
    go(admin, "Settings")
    admin.get_by_role("link", name="Members", exact=True).click()
    admin.get_by_label("E-mail address").fill(email)
    admin.get_by_role("button", name="Invite").click()
    assert "/invitation/" in admin.locator("#made-link").inner_text()
    assert count_clicks(admin) <= 3
    page = visit(signed_in=False).page
    page.goto(mailed_link(server, email))  # of the two links this one proves the address
    page.get_by_label("New password").fill("a heron by the mill")
    page.get_by_role("button", name="Join").click()
    choose_in_account_menu(page, "link", "Your account")
    page.locator("main a[href='/account/second-factor/']").first.click()
    secret = re.search(r"<code>([A-Z2-7]{32})</code>", page.content())
    assert secret is not None
    page.locator("#id_code").fill(code_of(secret[1]))
    page.get_by_role("button", name="Turn it on").click()
    expect(page.locator("main code").first).to_have_text(re.compile(r"^\d{8}$"))
    assert count_clicks(page) <= 5


def test_key_and_configuration_connect_a_host_by_mcp(page: Page, server: RunningServer) -> None:
    page.goto("/overview/")
    go(page, "Integrations")
    address = re.search(r"http://\S+/mcp/", page.locator("#host-claude_code, [id^=host-]").first.inner_text())
    assert address is not None
    page.get_by_role("link", name="New key").click()
    page.get_by_label("Name", exact=True).fill("desk")
    for scope in ("memories:read", "memories:write"):
        page.locator(f"input[name=scopes][value='{scope}']").check()
    page.get_by_role("button", name="Make the key").click()
    key = page.locator("#made-key").inner_text()
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "host", "version": "1"},
        },
    }
    request = urllib.request.Request(
        address[0],
        data=json.dumps(hello).encode(),
        headers={
            "Authorization": f"Bearer {key}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        },
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert "serverInfo" in answer.read().decode()
    assert api(server, "GET", "me/", key=key)[0] == 200
    assert count_clicks(page) <= 5
    page.locator("tr", has_text="desk").get_by_role("link", name="Requests: desk").click()

    def is_logged() -> bool:
        page.reload()
        return page.locator("main").get_by_text("GET /api/v1/me/").count() > 0

    wait_until(is_logged, seconds=JOB_SECONDS)


def test_notes_are_imported_and_exported_encrypted(page: Page, tmp_path: Path) -> None:
    word = f"weir{uuid4().hex[:6]}"
    notes: FilePayload = {
        "name": "notes.md",
        "mimeType": "text/markdown",
        "buffer": f"# Notes\n\nThe {word} is closed on Mondays.\n".encode(),
    }
    page.goto("/overview/")
    go(page, "Import and export")
    own_key = page.locator("input[readonly]").first.input_value()
    page.get_by_label("File", exact=True).set_input_files(notes)
    page.get_by_role("button", name="Next: preview").click()
    page.get_by_role("button", name=re.compile(r"^Import \d")).click()
    page.wait_for_url("**/exchange/imports/**")
    expect(page.locator("main")).to_contain_text("stored", timeout=JOB_SECONDS * 1000)
    go(page, "Import and export")
    page.get_by_role("button", name="Export", exact=True).click()
    job = page.locator("#exchange-jobs .run").first
    job.get_by_text("Encrypt for a recipient").click(timeout=JOB_SECONDS * 1000)
    job.get_by_label("Public key of the recipient").fill(own_key)
    with page.expect_download() as download:
        job.get_by_role("button", name="Download encrypted").click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    assert word.encode() not in path.read_bytes()
    assert count_clicks(page) <= 7
    page.get_by_label("File", exact=True).set_input_files(path)  # whom the file is encrypted for can open it
    page.get_by_role("button", name="Next: preview").click()
    expect(page.get_by_role("heading", name="What would come")).to_be_visible()
