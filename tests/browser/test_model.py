"""Asking in the browser, with a language model that streams."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import memory_add
from tests.browser.talker import talking
from tests.browser.visit import ask
from tests.harness.product import RunningServer, installation
from tests.harness.servers import Servers

pytestmark = [pytest.mark.browser, pytest.mark.full]


@pytest.fixture(scope="module")
def server(servers: Servers) -> Iterator[RunningServer]:
    """An installation with a model of the tests' own."""
    with (
        talking() as address,
        installation(servers.cluster, MEMOS_LLM_URL=address, MEMOS_LLM_MODEL="talker", MEMOS_LLM_READS="no") as started,
    ):
        started.start()
        memory_add(started, content="Ana likes to travel by train.", title="How Ana travels")
        yield started


def test_a_marker_that_comes_in_pieces_becomes_a_chip(page: Page) -> None:
    page.goto("/chat/")
    ask(page, "How does Ana travel?")
    expect(page.locator(".turn .meta")).to_contain_text("talker")
    assert page.locator(".answer").inner_text() == "By train 1, she says; not [7].\n茶"
    expect(page.locator(".chip-cite")).to_have_count(1)
    expect(page.locator(".turn .note")).to_have_count(0)


def test_words_are_shown_as_they_come_and_the_reader_can_stop_them(page: Page) -> None:
    page.goto("/chat/")
    ask(page, "Tell me something endless about Ana.")
    expect(page.locator(".answer")).to_contain_text("word3 ")
    expect(page.locator(".turn")).to_have_attribute("aria-busy", "true")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".turn .note").last).to_have_text("Stopped before the answer was complete.")
    expect(page.locator(".answer")).to_contain_text("word3 ")
    expect(page.locator(".answer")).not_to_contain_text("word300 ")
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    page.reload()
    expect(page.locator(".turn .note").last).to_have_text("Stopped before the answer was complete.")


def test_a_question_that_is_stopped_before_its_answer_begins_is_back_at_once(page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto("/chat/")
    ask(page, "Please be silent, Ana?")
    page.wait_for_url(re.compile(r"/chat/[0-9a-f-]{36}/$"))
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#question")).to_have_value("Please be silent, Ana?")
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    assert not [url for url in asked if re.search(r"/turns/[0-9a-f-]{36}/$", url)]
    page.locator("#question").fill("How does Ana travel?")
    page.keyboard.press("Enter")
    expect(page.locator(".turn .meta")).to_contain_text("talker")


def test_markdown_of_a_model_is_drawn(page: Page) -> None:
    page.goto("/chat/")
    ask(page, "Show marks about Ana.")
    expect(page.locator(".answer strong")).to_have_text("By train")
    expect(page.locator(".answer li")).to_have_count(2)
    expect(page.locator(".answer a:not(.chip-cite)")).to_have_count(0)
    expect(page.locator(".answer")).to_contain_text("[press](https://evil.example/)")


def test_a_model_that_refuses_is_replaced_by_a_reply_that_says_so(page: Page) -> None:
    page.goto("/chat/")
    ask(page, "Please refuse, Ana?")
    expect(page.locator(".answer")).to_contain_text("The language model gave no answer.")
    expect(page.locator(".turn")).to_contain_text("No answer from talker.")


def test_a_model_that_breaks_off_leaves_the_question_in_its_box(page: Page) -> None:
    page.goto("/chat/")
    ask(page, "Is Ana broken?")
    expect(page.get_by_role("alert")).to_contain_text("The language model gave no answer.")
    expect(page.get_by_role("alert")).to_contain_text("broke off its reply")
    expect(page.locator("#question")).to_have_value("Is Ana broken?")
    expect(page.locator(".turn")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"/chat/[0-9a-f-]{36}/$"))


def test_without_scripts_a_failing_model_is_reported_beside_the_question(page: Page) -> None:
    page.goto("/chat/")
    page.locator("#question").fill("Is Ana broken?")
    with page.expect_navigation():
        page.evaluate("HTMLFormElement.prototype.submit.call(document.getElementById('composer'))")
    expect(page.get_by_role("alert")).to_contain_text("The language model gave no answer.")
    expect(page.locator("#question")).to_have_value("Is Ana broken?")
