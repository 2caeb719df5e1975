"""A table is imported in a browser: uploaded, mapped, checked, stored, reported. With and without scripts."""

import re
from uuid import uuid4

import pytest
from playwright.sync_api import FilePayload, Page, expect

from tests.browser.conftest import OpenVisit
from tests.browser.looks import looked_at
from tests.harness.product import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.full]
STORED_SECONDS = 30.0
TABLE = """Note,Who,Day
The heron {name} nests by the mill.,Mia,2026-04-02
The heron {name} fishes at dawn.,Tom,last week
"""


def table(name: str) -> FilePayload:
    return {"name": "notes.csv", "mimeType": "text/csv", "buffer": TABLE.format(name=name).encode()}


def upload(page: Page, name: str) -> None:
    page.goto("/exchange/")
    page.get_by_label("File", exact=True).set_input_files(table(name))
    page.get_by_role("button", name="Next: preview").click()
    expect(page.get_by_role("heading", name="What would come")).to_be_visible()


def choose_columns(page: Page) -> None:
    for label, column in (("Text", "Note"), ("Speaker", "Who"), ("Date", "Day")):
        page.get_by_label(label, exact=True).select_option(column)
    page.get_by_role("button", name="Check again").click()
    expect(page.get_by_text("said by Mia")).to_be_visible()
    expect(page.get_by_text("a date that cannot be read").first).to_be_visible()


def store(page: Page) -> None:
    """Import, and load the report until the job has ended."""
    page.get_by_role("button", name=re.compile("Import 2 memories")).click()
    page.wait_for_url("**/exchange/imports/**")

    def is_stored() -> bool:
        page.reload()
        return page.get_by_text("2 memories stored").count() == 1

    wait_until(is_stored, seconds=STORED_SECONDS)
    expect(page.get_by_role("heading", name="What did not come")).to_be_visible()


@pytest.mark.parametrize("has_scripts", [True, False])
def test_table_is_mapped_and_imported(has_scripts: bool, visit: OpenVisit) -> None:
    page, name = visit(java_script_enabled=has_scripts).page, uuid4().hex[:8]
    upload(page, name)
    choose_columns(page)
    store(page)
    page.goto(f"/memories/?q={name}")
    expect(page.locator("main")).to_contain_text(f"The heron {name} nests by the mill.")
    expect(page.locator("main")).to_contain_text(f"The heron {name} fishes at dawn.")  # only its date was left out


def test_pages_of_an_import_have_no_finding(visit: OpenVisit) -> None:
    page, name = visit().page, uuid4().hex[:8]
    upload(page, name)
    found = looked_at(page)
    choose_columns(page)
    found += looked_at(page)
    store(page)
    assert found + looked_at(page) == []
