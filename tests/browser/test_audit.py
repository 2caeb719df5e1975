"""The auditor's pages in a real browser, over an audit log that the real worker has sealed, signed and exported."""

import json
import urllib.request
import zipfile
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from governance.audit.verifier import export_verify, public_key_read
from tests.browser.conftest import OpenVisit, memory_add
from tests.browser.test_accessibility import LOOKS, findings
from tests.harness.product import RunningServer, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.full]

PAGES = ("", "verify/", "checkpoints/", "exports/", "permission-changes/", "unusual-reads/", "sinks/")


def get(server: RunningServer, address: str) -> Any:
    request = urllib.request.Request(
        f"{server.base_url}/api/v1/{address}", headers={"Authorization": f"Bearer {server.first_run['api_key']}"}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def test_what_was_written_is_sealed_within_a_second_or_so_and_verifies(server: RunningServer) -> None:
    memory_add(server, content="Sealed soon.")
    entry = get(server, "audit/?verb=memory.created&page_size=1")["results"][0]["id"]
    wait_until(lambda: get(server, f"audit/{entry}/")["seal"] is not None, seconds=5)
    assert get(server, "audit/verify/")["intact"] is True
    done = server.manage("audit_verify", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["tenants"][0]["checkpoints_outside"] > 0


@pytest.mark.parametrize("look", LOOKS)
def test_no_page_of_the_audit_log_has_a_serious_finding(visit: OpenVisit, look: dict[str, Any]) -> None:
    page = visit(**look).page
    found: list[str] = []
    for address in PAGES:
        page.goto(f"/audit/{address}")
        found += findings(page)
    page.goto("/audit/")
    entry = page.locator("#entries a:visible").first
    href = entry.get_attribute("href")
    entry.click()
    page.wait_for_url(f"**{href}")
    found += findings(page)
    assert found == []


def test_filters_answer_in_place_and_the_button_verifies(page: Page) -> None:
    page.goto("/audit/")
    page.get_by_text("Add filter").click()
    page.locator("select[name=verb]").select_option("tenant.created")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#entries .entry")).to_have_count(1)
    assert "verb=tenant.created" in page.url
    page.goto("/audit/verify/")
    page.get_by_role("button", name="Verify now").click()
    expect(page.locator("#verification")).to_contain_text("Intact.")


def test_an_export_shows_its_progress_and_verifies_elsewhere(page: Page, server: RunningServer, tmp_path: Path) -> None:
    page.goto("/audit/exports/")
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as waiting:
        page.locator("#exports").get_by_role("link", name="Download").first.click()
    packed = tmp_path / "taken.zip"
    waiting.value.save_as(packed)
    key = public_key_read(json.dumps(get(server, "audit/public-key/")))
    report = export_verify(packed, key, [])
    assert report.intact
    assert report.checkpoint == report.seals > 0
    with zipfile.ZipFile(packed) as archive:
        assert json.loads(archive.read("manifest.json"))["entries"] == report.entries
