"""Asked for a burger, the chat recalls the wish to lose weight: once, cited, and not once goals are off."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visit import ask

pytestmark = [pytest.mark.browser, pytest.mark.long]


@pytest.mark.parametrize(
    ("goal", "question", "again", "lead"),
    [
        (
            "I want to lose weight.",
            "Can you recommend a burger?",
            "And which burger would you order?",
            "You have a goal that this touches:",
        ),
        ("我想减肥。", "能推荐一家汉堡店吗？", "哪家汉堡店最好？", "这和你的一个目标有关："),
    ],
    ids=["English", "Chinese"],
)
def test_a_goal_is_raised_once_and_can_be_turned_off(
    page: Page, goal: str, question: str, again: str, lead: str
) -> None:
    page.goto("/chat/")
    ask(page, goal)
    expect(page.locator(".turn .why-link")).to_have_count(1)
    expect(page.get_by_text("1 memory stored:")).to_be_visible()
    page.goto("/chat/")
    ask(page, question)
    answer = page.locator(".answer").last
    expect(answer).to_contain_text(lead)
    expect(answer).to_contain_text(goal)
    expect(answer.locator(".chip-cite")).not_to_have_count(0)
    expect(page.locator(".turn .why-link")).to_have_count(1)
    ask(page, again)
    expect(page.locator(".turn .why-link")).to_have_count(2)
    expect(page.locator(".answer").last).not_to_contain_text(lead)
    page.goto("/chat/")
    ask(page, "Where is the key?")
    page.get_by_role("button", name="Goals on").click()
    expect(page.get_by_role("button", name="Goals off")).to_be_visible()
    ask(page, question)
    expect(page.locator(".turn .why-link")).to_have_count(2)
    expect(page.locator(".answer").last).not_to_contain_text(lead)
