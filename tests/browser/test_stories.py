"""Two stories in the chat, in English and Chinese: weeks after something was told, the chat recalls it and cites it."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import SignIn
from tests.browser.visit import ask
from tests.harness.product import RunningServer, installation
from tests.harness.servers import Servers
from tests.journeys.live import superuser

pytestmark = [pytest.mark.browser, pytest.mark.full]

# Each time in the tables of the product is moved back, so that all that was told was told three weeks ago.
MOVE_BACK = """
DO $$
DECLARE at record;
BEGIN
  SET LOCAL session_replication_role = replica;
  FOR at IN
    SELECT table_name, string_agg(format('%1$I = %1$I - interval ''21 days''', column_name), ', ') AS moved
    FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
    WHERE table_schema = 'public' AND table_name LIKE 'vault\\_%' AND table_type = 'BASE TABLE'
      AND data_type = 'timestamp with time zone'
    GROUP BY table_name
  LOOP
    EXECUTE format('UPDATE %I SET %s', at.table_name, at.moved);
  END LOOP;
END $$
"""


@dataclass(frozen=True)
class Outing:
    """told: said before and after others; questions: each with what its answer recalls."""

    locale: str
    told: tuple[str, ...]
    small_talk: tuple[str, ...]
    questions: tuple[tuple[str, str], ...]
    ago: str


@dataclass(frozen=True)
class Craving:
    locale: str
    goal: str
    question: str
    again: str
    lead: str
    switch: tuple[str, str]


OUTINGS = (
    Outing(
        locale="en-GB",
        told=(
            "My sister is looking for a flat.",
            "I went to the wetland park this morning.",
            "I went for a run of eight kilometres along the dike.",
            "I saw a red squirrel beside the boardwalk.",
            "I cooked lentil soup for Ben.",
        ),
        small_talk=("Good morning!", "Thanks, see you."),
        questions=(
            ("Where did I go that morning?", "wetland park"),
            ("How far did I run?", "eight kilometres"),
            ("Which animal did I see beside the boardwalk?", "red squirrel"),
        ),
        ago="wetland park",
    ),
    Outing(
        locale="zh-CN",
        told=(
            "我姐姐在找房子。",
            "我今天早上去了湿地公园。",
            "我沿着河堤跑步跑了八公里。",
            "我在木栈道旁边看到了一只松鼠。",
            "我给小本做了扁豆汤。",
        ),
        small_talk=("早上好！", "谢谢，再见。"),
        questions=(
            ("我去了哪个公园？", "湿地公园"),
            ("我跑步跑了多少公里？", "八公里"),
            ("我在木栈道旁边看到了什么？", "松鼠"),
        ),
        ago="湿地公园",
    ),
)
CRAVINGS = (
    Craving(
        locale="en-GB",
        goal="I want to lose weight.",
        question="Can you recommend a burger?",
        again="And which burger would you order?",
        lead="You have a goal that this touches:",
        switch=("Goals on", "Goals off"),
    ),
    Craving(
        locale="zh-CN",
        goal="我想减肥。",
        question="能推荐一家汉堡店吗？",
        again="哪家汉堡店最好？",
        lead="这和你的一个目标有关：",
        switch=("提醒目标：开", "提醒目标：关"),
    ),
)


@pytest.fixture(scope="module")
def server(servers: Servers) -> Iterator[RunningServer]:
    """An installation of its own: all that it stores grows older at once."""
    with installation(servers.cluster) as started:
        started.start()
        yield started


def tell(page: Page, text: str) -> Locator:
    """Say something in the chat; the answer, once it is stored."""
    answered = page.locator(".turn .why-link")
    before = answered.count()
    ask(page, text)
    expect(answered).to_have_count(before + 1)
    return page.locator(".turn").last


def weeks_pass(server: RunningServer) -> None:
    with superuser(server) as connection:
        connection.execute(MOVE_BACK)


@pytest.mark.parametrize("story", OUTINGS, ids=["English", "Chinese"])
def test_outing_of_three_weeks_ago_is_recalled_with_its_memories(
    server: RunningServer, colleague: SignIn, story: Outing
) -> None:
    page = colleague("mina", "editor", locale=story.locale)
    page.goto("/chat/")
    for text in (story.small_talk[0], *story.told, story.small_talk[1]):
        tell(page, text)
    weeks_pass(server)
    page.goto("/chat/")
    for question, recalled in story.questions:
        told = next(sentence for sentence in story.told if recalled in sentence)
        turn = tell(page, question)
        answer = turn.locator(".answer")
        expect(answer).to_contain_text(told)
        for talk in story.small_talk:
            expect(answer).not_to_contain_text(talk)
        answer.locator(".chip-cite").first.click()
        expect(page.locator("#pane-body")).to_contain_text(told)


@pytest.mark.parametrize("story", CRAVINGS, ids=["English", "Chinese"])
def test_goal_of_three_weeks_ago_is_raised_once_cited_and_can_be_turned_off(
    server: RunningServer, colleague: SignIn, story: Craving
) -> None:
    page = colleague("nora", "editor", locale=story.locale)
    page.goto("/chat/")
    told = tell(page, story.goal)
    expect(told.locator(".stored")).to_contain_text(story.goal)
    weeks_pass(server)
    page.goto("/chat/")
    answer = tell(page, story.question).locator(".answer")
    expect(answer).to_contain_text(story.lead)
    expect(answer).to_contain_text(story.goal)
    expect(answer.locator(".chip-cite")).to_have_count(1)
    answer.locator(".chip-cite").click()
    expect(page.locator("#pane-body")).to_contain_text(story.goal)
    expect(tell(page, story.again).locator(".answer")).not_to_contain_text(story.lead)
    page.goto("/chat/")
    tell(page, "ok")
    page.locator("#bar summary").click()
    page.get_by_role("button", name=story.switch[0]).click()
    page.locator("#bar summary").click()
    expect(page.get_by_role("button", name=story.switch[1])).to_be_visible()
    expect(tell(page, story.question).locator(".answer")).not_to_contain_text(story.lead)
