"""Finding, reading, editing, comparing and taking back a memory in the browser; on a phone; without scripts."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenVisit, memory_add
from tests.browser.looks import looked_at
from tests.browser.visit import count_clicks, submit
from tests.harness.product import RunningServer, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.full]

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
TRANSFERRED = """() => performance.getEntriesByType("resource")
  .concat(performance.getEntriesByType("navigation")).reduce((sum, one) => sum + one.encodedBodySize, 0)"""
FIRST_LOAD = 190 * 1024


@pytest.fixture(autouse=True)
def memories(server: RunningServer) -> None:
    memory_add(server, content="Ana likes to travel by train.", title="How Ana travels", tags=["ana"])
    memory_add(server, content="Bo drinks green tea in the morning.", tags=["bo"])


def test_search_edit_compare_and_roll_back_in_one_go(page: Page) -> None:
    page.goto("/memories/")
    assert page.evaluate(TRANSFERRED) <= FIRST_LOAD
    page.keyboard.press("/")
    page.keyboard.type("train")
    expect(page.locator("#rows tr mark").first).to_have_text("train")
    expect(page).to_have_url(re.compile(r"\?q=train"))
    page.wait_for_load_state("networkidle")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("x")
    expect(page.locator("#selected-count")).to_have_text("1")
    page.keyboard.press("x")
    page.locator("#rows .memory-text").first.click()
    expect(page.locator("#reader .reader-title")).to_have_text("How Ana travels")
    expect(page).to_have_url(re.compile(r"selected="))
    assert looked_at(page) == []
    page.set_viewport_size({"width": 1280, "height": 800})
    page.keyboard.press("Escape")
    expect(page.locator("#reader")).to_be_hidden()
    page.locator("#rows tr").first.locator(".c-type").click()
    page.locator("#reader").get_by_role("link", name="Open", exact=True).click()
    page.wait_for_url(re.compile(r"/memories/[0-9a-f-]{36}/$"))
    page.wait_for_load_state()
    page.keyboard.press("e")
    page.locator("#edit-content").fill("Ana likes to travel by boat.")
    page.locator("#edit-reason").fill("She said so.")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".memory-content .content")).to_have_text("Ana likes to travel by boat.")
    expect(page.locator(".diff ins")).to_have_text("boat")
    expect(page.locator(".timeline").first).to_contain_text("She said so.")
    assert looked_at(page) == []
    page.get_by_role("button", name="Roll back to version 1").click()
    expect(page.locator(".memory-content .content")).to_have_text("Ana likes to travel by train.")
    assert count_clicks(page) <= 4


def test_the_palette_opens_what_it_finds(page: Page) -> None:
    page.goto("/audit/")
    page.keyboard.press("Control+k")
    page.keyboard.type("green tea")
    expect(page.locator("#palette-memory-1")).to_contain_text("green tea")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/memories/[0-9a-f-]{36}/$"))
    page.wait_for_load_state()
    page.keyboard.press("g")
    page.keyboard.press("c")
    expect(page).to_have_url(re.compile("/chat/$"))


def test_tab_goes_past_the_search_and_typing_opens_it(page: Page) -> None:
    page.goto("/memories/")
    page.locator("#search").focus()
    expect(page.locator("#palette")).to_be_hidden()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('.topbar-end') !== null")
    page.keyboard.press("Shift+Tab")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.type("green tea")
    expect(page.locator("#palette-field")).to_have_value("green tea")
    expect(page.locator("#palette-memory-1")).to_contain_text("green tea")


def test_a_memory_is_deleted_and_brought_back_by_keys(page: Page, server: RunningServer) -> None:
    address = memory_add(server, content="The last train leaves at nine.")
    page.goto(address)
    page.keyboard.press("#")
    page.get_by_role("button", name=re.compile("^Delete 1")).press("Enter")
    expect(page.locator(".toast")).to_contain_text("1 memory deleted")
    page.wait_for_load_state("load")  # a module listens to keys, and the toast is there before it runs
    page.goto("/audit/")
    page.wait_for_load_state("load")
    page.keyboard.press("z")
    expect(page.locator(".toast")).to_contain_text("1 memory restored")
    expect(page).to_have_url(re.compile("/audit/$"))


def test_search_and_filters_work_on_a_phone(visit: OpenVisit) -> None:
    page = visit(**PHONE).page
    page.goto("/memories/?q=tea")
    page.get_by_role("link", name="Filters", exact=True).tap()
    expect(page.locator("#facet-list")).to_be_in_viewport()
    page.get_by_role("link", name="Show memories").tap()
    page.locator("#rows .memory-text").first.tap()
    expect(page.locator(".memory-content .content")).to_contain_text("green tea")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_search_edit_delete_and_restore_without_scripts(visit: OpenVisit) -> None:
    page = visit(java_script_enabled=False).page
    page.goto("/memories/")
    page.locator("#find").fill("green tea")
    page.get_by_role("button", name="Search", exact=True).click()
    page.locator("#rows .memory-text").first.click()
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Content").fill("Bo drinks black tea.")
    page.get_by_role("button", name="Save version").click()
    expect(page.locator(".memory-content .content")).to_have_text("Bo drinks black tea.")
    page.get_by_role("button", name="Delete…").click()
    submit(page.get_by_role("button", name="Delete 1"))
    page.goto("/memories/?deleted=true")
    page.locator("#rows input[name=id]").first.check()
    page.get_by_role("button", name="Restore").click()
    submit(page.get_by_role("button", name="Restore 1"))
    page.goto("/memories/?q=black+tea")
    expect(page.locator("#rows .memory-text").first).to_have_text("Bo drinks black tea.")


def test_all_that_match_a_filter_expire_and_are_taken_back(server: RunningServer, page: Page) -> None:
    for number in range(52):
        memory_add(server, content=f"Shift {number} of the spring rota.", tags=["spring"])
    page.goto("/memories/")
    page.locator("[data-facet=tags] summary").click()
    page.locator("[data-facet=tags]").get_by_label("spring").check()
    expect(page).to_have_url(re.compile("tags=spring"))
    page.locator("#select-all").check()
    page.get_by_label("All 52 that match").check()
    page.get_by_role("button", name="Expire…").click()
    expect(page.locator(".dryrun")).to_contain_text("52")
    page.get_by_label("Expires").fill("2099-01-01T00:00")
    assert looked_at(page) == []
    page.get_by_role("button", name="Set expiry 52").click()
    expect(page.locator("#job .state").first).to_have_text("Done", timeout=30_000)
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("heading", name="Undo a change of memories")).to_be_visible()
    expect(page.locator("#job .state").first).to_have_text("Done", timeout=30_000)
    assert count_clicks(page) <= 7
    page.goto("/memories/?tags=spring&order=expiring")
    expect(page.locator("#rows tr")).to_have_count(0)


def test_the_overview_leads_to_its_rows(server: RunningServer, page: Page) -> None:
    page.goto("/overview/")
    assert looked_at(page) == []
    page.set_viewport_size({"width": 1280, "height": 800})
    tile = page.locator("a.tile").first  # of the reviews until a job has counted, then of the memories
    address = str(tile.get_attribute("href"))
    tile.click()
    expect(page).to_have_url(re.compile(f"{re.escape(address)}$"))


def test_the_graph_leads_from_a_name_to_its_memories(server: RunningServer, page: Page) -> None:
    told = {"We met Marta in Lisbon.", "Then Marta moved to Porto."}
    for content in (*told, "The kettle whistles at noon."):
        memory_add(server, content=content)

    def list_drawn_memories() -> set[str | None]:
        page.goto("/graph/")
        page.get_by_label("Around a person or a topic").fill("Marta")
        page.get_by_role("button", name="Show", exact=True).click()
        page.wait_for_url(re.compile("around=Marta"))
        return {node.get_attribute("aria-label") for node in page.locator(".g-memory").all()}

    # Links are a job's; what other tests stored may be linked, too.
    wait_until(
        lambda: told <= list_drawn_memories(), seconds=30, why=lambda: f"{list_drawn_memories()} {server.report()}"
    )
    assert "The kettle whistles at noon." not in list_drawn_memories()
    assert looked_at(page) == []
    page.set_viewport_size({"width": 1280, "height": 800})
    page.get_by_role("link", name="List", exact=True).click()
    page.get_by_role("link", name="Then Marta moved to Porto.").first.click()
    expect(page.locator(".memory-content .content")).to_have_text("Then Marta moved to Porto.")


def test_the_playground_compares_two_settings(server: RunningServer, page: Page) -> None:
    page.goto("/memories/playground/?q=green+tea&b_dense=1")
    expect(page.locator(".playground-hits").last).to_contain_text("green tea")
    assert looked_at(page) == []


def test_the_bell_leads_to_what_waits(server: RunningServer, page: Page) -> None:
    memory_add(server, content="Write to ana@example.org about the boat.")
    page.goto("/chat/")
    expect(page.locator(".bell-count")).not_to_be_empty()
    page.get_by_role("link", name="Notices").click()
    expect(page.locator(".todo")).to_contain_text("review")
    assert looked_at(page) == []


def test_next_rows_come_in_the_inner_scroller_and_a_phone_selects(server: RunningServer, page: Page) -> None:
    for number in range(40):
        memory_add(server, content=f"Otter {number} swims.", tags=["otter"])
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto("/memories/?tags=otter")
    expect(page.locator("#rows tr[data-id]")).to_have_count(30)
    page.locator(".explorer-scroll").evaluate("one => one.scrollTo(0, one.scrollHeight)")
    expect(page.locator("#rows tr[data-id]")).to_have_count(40)
    page.set_viewport_size({"width": 390, "height": 844})
    page.reload()
    expect(page.locator("#rows input[name=id]").first).to_be_hidden()
    page.get_by_role("button", name="Select", exact=True).click()
    page.locator("#rows input[name=id]").first.check()
    page.locator(".bulkbar summary").click()
    box = page.locator(".bulkbar .menu-list").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    assert looked_at(page) == []
    page.get_by_role("button", name="Archive…").click()
    expect(page.locator(".dryrun")).to_contain_text("1")


def test_phone_without_scripts_has_boxes_and_no_button_that_does_nothing(visit: OpenVisit) -> None:
    page = visit(java_script_enabled=False, viewport=PHONE["viewport"]).page
    page.goto("/memories/")
    expect(page.locator("#rows input[name=id]").first).to_be_visible()
    expect(page.get_by_role("button", name="Select", exact=True)).to_have_count(0)
