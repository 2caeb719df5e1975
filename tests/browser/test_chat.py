"""Asking in the browser, with no language model configured."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenVisit, memory_add
from tests.browser.visit import ask
from tests.harness.product import RunningServer

pytestmark = [pytest.mark.browser, pytest.mark.full]

QUESTION = "How does Ana like to travel?"
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@pytest.fixture(autouse=True)
def stored_memories(server: RunningServer) -> None:
    memory_add(server, content="Ana likes to travel by train.", title="How Ana travels", tags=["ana"])


def test_an_answer_comes_without_leaving_the_page(page: Page) -> None:
    page.goto("/chat/")
    ask(page, QUESTION)
    expect(page.locator(".answer")).to_contain_text("Ana likes to travel by train.")
    expect(page.locator(".turn .note")).to_contain_text("No language model was used")
    expect(page.locator(".turn .meta time")).to_have_attribute("title", re.compile("UTC"))
    expect(page).to_have_url(re.compile(r"/chat/[0-9a-f-]{36}/$"))
    expect(page.locator("#bar h1")).to_have_text(QUESTION)
    expect(page.locator("#conversations [aria-current]")).to_have_text(QUESTION)
    expect(page.locator("#question")).to_be_focused()
    ask(page, "Who travels by train?")
    expect(page.locator(".turn .meta")).to_have_count(2)
    page.reload()
    expect(page.locator(".turn")).to_have_count(2)


def test_enter_that_ends_a_composition_does_not_send(page: Page) -> None:
    """Safari ends the composition before it tells of the key, whose code then is 229."""
    page.goto("/chat/")
    page.locator("#question").fill("你好")
    press = (
        "new KeyboardEvent('keydown', {key: 'Enter', keyCode: %d, isComposing: %s, bubbles: true, cancelable: true})"
    )
    for code, is_composing in ((229, "false"), (13, "true")):
        page.evaluate(f"document.getElementById('question').dispatchEvent({press % (code, is_composing)})")
        expect(page.locator("#question")).to_have_value("你好")
        expect(page.locator(".turn")).to_have_count(0)
    page.keyboard.press("Enter")
    expect(page.locator(".turn")).to_have_count(1)


def test_streamed_quotes_are_marked_as_quotes(page: Page) -> None:
    page.route(re.compile(r"/turns/[0-9a-f-]{36}/$"), lambda route: route.fulfill(status=404))  # the server's drawing
    page.goto("/chat/")
    ask(page, QUESTION)
    expect(page.locator(".turn .note")).to_contain_text("No language model was used")


def test_a_chip_opens_its_memory_beside_the_chat(page: Page) -> None:
    page.goto("/chat/")
    ask(page, QUESTION)
    page.locator(".turn .meta").wait_for()
    chip = page.locator(".chip-cite").first
    chip.click()
    pane = page.locator("#pane")
    expect(pane.get_by_role("heading", name="How Ana travels")).to_be_focused()
    expect(pane.locator(".content").first).to_have_text("Ana likes to travel by train.")
    page.keyboard.press("Escape")
    expect(pane).to_be_hidden()
    expect(chip).to_be_focused()
    chip.press("Enter")
    pane.get_by_role("link", name="Open its page").click()
    expect(page).to_have_url(re.compile("/memories/"))


def test_shift_enter_begins_a_line_and_enter_sends(page: Page) -> None:
    page.goto("/chat/")
    page.locator("#question").fill("How does Ana")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("travel?")
    page.keyboard.press("Enter")
    expect(page.locator(".question")).to_have_text("How does Ana\ntravel?")


def test_an_empty_question_is_not_sent(page: Page) -> None:
    page.goto("/chat/")
    ask(page, "   ")
    expect(page.get_by_role("alert")).to_have_text("Write something to ask.")
    expect(page).to_have_url(re.compile("/chat/$"))


def test_a_lost_connection_leaves_the_question_in_its_box(page: Page) -> None:
    page.goto("/chat/")
    page.route("**/chat/", lambda route: route.abort())
    ask(page, QUESTION)
    expect(page.get_by_role("alert")).to_contain_text("The connection was lost")
    expect(page.locator("#question")).to_have_value(QUESTION)
    expect(page.locator(".turn")).to_have_count(0)
    page.unroute("**/chat/")
    page.keyboard.press("Enter")
    expect(page.locator(".turn .meta")).to_have_count(1)
    expect(page.get_by_role("alert")).to_be_hidden()


def test_everything_works_without_scripts(visit: OpenVisit) -> None:
    page = visit(java_script_enabled=False).page
    page.goto("/chat/")
    page.locator("#question").fill(QUESTION)
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".answer")).to_contain_text("Ana likes to travel by train.")
    page.get_by_role("link", name="Rename").click()
    page.get_by_label("Title").fill("Journeys")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#bar h1")).to_have_text("Journeys")
    page.locator(".chip-cite").first.click()
    expect(page.get_by_role("heading", name="How Ana travels", level=1)).to_be_visible()
    page.go_back()
    page.locator("#bar summary").click()
    page.get_by_role("link", name="Delete").click()
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="Ask what is remembered")).to_be_visible()


def test_it_works_on_a_phone(visit: OpenVisit) -> None:
    page = visit(**PHONE).page
    page.goto("/chat/")
    ask(page, QUESTION)
    page.locator(".turn .meta").wait_for()
    page.locator(".chip-cite").first.tap()
    expect(page.locator("#pane #memory-title")).to_be_in_viewport()
    page.locator("#pane-close").tap()
    expect(page.locator("#pane")).to_be_hidden()
    drawer = page.locator("#conversations")
    expect(drawer).to_be_hidden()
    page.locator(".drawer-open").tap()
    expect(drawer).to_be_in_viewport()
    drawer.get_by_role("link", name="New conversation").first.tap()
    expect(page.get_by_role("heading", name="Ask what is remembered")).to_be_in_viewport()
    for address in ("/chat/", "/sign-in/", "/nope/"):
        page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
