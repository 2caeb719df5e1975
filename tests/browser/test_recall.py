"""Weeks after it was told, the chat recalls the wetland park, the run and the squirrel."""

from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import memory_add
from tests.browser.visit import ask
from tests.harness.product import RunningServer

pytestmark = [pytest.mark.browser, pytest.mark.long]


@pytest.mark.parametrize(
    ("told", "question", "animal"),
    [
        (
            "I went for a run in the wetland park this morning and saw a red squirrel.",
            "What did I see in the wetland park?",
            "squirrel",
        ),
        ("今天早上我在湿地公园跑步，看到了一只松鼠。", "我在湿地公园看到了什么？", "松鼠"),
    ],
    ids=["English", "Chinese"],
)
def test_story_of_three_weeks_ago_is_recalled_with_its_memory(
    page: Page, server: RunningServer, told: str, question: str, animal: str
) -> None:
    at = (datetime.now(UTC) - timedelta(days=21)).isoformat()
    memory_add(server, messages=[{"role": "user", "content": told, "timestamp": at}], session_id=animal)
    page.goto("/chat/")
    ask(page, question)
    answer = page.locator(".answer").last
    expect(answer).to_contain_text(animal)
    page.locator(".turn .meta").wait_for()
    answer.locator(".chip-cite").first.click()
    expect(page.locator("#pane-body")).to_contain_text(told)
