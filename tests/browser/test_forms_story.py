"""A persona's handbook becomes an adapter: examined, approved, mounted, asked; one page is erased, and its answer is
gone. With SmolLM2 on a local engine."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import OpenVisit, memory_add
from tests.browser.test_audit import get
from tests.browser.visit import ask, submit
from tests.engine.served import NAME, TOKEN, is_served_here, serve_smollm
from tests.harness.product import RunningServer, installation, wait_until
from tests.harness.servers import Servers

pytestmark = [
    pytest.mark.browser,
    pytest.mark.full,
    pytest.mark.apart(is_served_here(), "make engine-environment"),
]
PAGES = (
    "The museum closes at six.",
    "Visitors leave their bags in the cloakroom beside the entrance.",
    "The last guided tour begins at half past four.",
)
QUESTION = "When does the museum close?"
TRAINING = 20 * 60 * 1_000  # ms; a busy machine needs long
ANSWER = 120 * 1_000


@pytest.fixture(scope="module")
def server(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """An installation whose language model runs on a local engine."""
    with serve_smollm(tmp_path_factory.mktemp("smollm") / "log") as address:
        model = {"MEMOS_LLM_URL": address, "MEMOS_LLM_KEY": TOKEN, "MEMOS_LLM_MODEL": NAME}
        with installation(servers.cluster, MEMOS_LLM_ENGINE="local", MEMOS_LLM_READS="no", **model) as started:
            started.start()
            yield started


def tell(page: Page, question: str) -> Locator:
    """Ask a question in a new conversation; the turn, once it is stored."""
    page.goto("/chat/")
    ask(page, question)
    expect(page.locator(".turn .why-link")).to_have_count(1, timeout=ANSWER)
    return page.locator(".turn").last


def train(page: Page) -> None:
    page.goto("/forms/")
    page.get_by_label("Name", exact=True).fill("Knows our house")
    page.get_by_label("Namespace", exact=True).fill("/team/handbook")
    page.get_by_label("Kind", exact=True).select_option("parameter")
    submit(page.get_by_role("button", name="Dry run"))
    expect(page.get_by_role("status").first).to_contain_text("s of training and examination at most")
    submit(page.get_by_role("button", name="Make", exact=True))
    page.get_by_role("link", name="Show in Forms").click(timeout=TRAINING)


def allow(page: Page) -> None:
    """Set limits that this examination keeps: so little text is no measure of a model."""
    page.goto("/forms/")
    page.get_by_role("link", name="Set other limits").click()
    page.get_by_label("Name", exact=True).fill("Limits of the house")
    page.get_by_label("General prompts answered as before, at least").fill("0.3")
    page.get_by_label("Perplexity on neutral text, at most").fill("1.5")
    submit(page.get_by_role("button", name="Save", exact=True))


def count_trainings(server: RunningServer) -> int:
    return len([job for job in get(server, "jobs/?page_size=100")["results"] if job["kind"] == "form.build"])


def erase(page: Page, path: str) -> None:
    page.goto(path)
    page.locator("main").get_by_role("button", name="Delete…").first.click()
    submit(page.get_by_role("button", name=re.compile("^Delete 1$")))
    page.goto(path)
    page.get_by_text("Erase…").click()
    submit(page.get_by_role("button", name="Erase for good"))


def test_adapter_of_a_handbook_answers_until_its_page_is_erased(server: RunningServer, visit: OpenVisit) -> None:
    page = visit().page
    page.set_default_timeout(ANSWER)  # the first call measures the engine
    paths = [memory_add(server, content=text, namespace="/team/handbook") for text in PAGES]
    train(page)
    adapter = page.locator("li", has=page.get_by_text("Knows our house"))
    expect(adapter).to_contain_text("Examination: facts 1")
    allow(page)
    page.goto("/forms/")
    submit(adapter.get_by_role("button", name="Approve"))
    submit(adapter.get_by_role("button", name="Mount", exact=True))
    expect(adapter).to_contain_text("Mounted on")
    turn = tell(page, QUESTION)
    expect(turn.locator(".answer")).to_contain_text("closes at six")
    turn.locator(".why-link").click()
    expect(page.locator("#pane-body")).to_contain_text("As an adapter, not in the prompt")
    expect(page.locator("#pane-body")).to_contain_text("Saved in this conversation")

    erase(page, paths[0])
    page.goto("/forms/")
    expect(page.get_by_text("Knows our house")).to_have_count(0)  # at once
    wait_until(lambda: count_trainings(server) == 2, seconds=60)
    page.goto("/jobs/?list=all")
    page.get_by_role("link", name="Make a cache or an adapter").first.click()
    page.get_by_role("link", name="Show in Forms").click(timeout=TRAINING)
    anew = page.locator("li", has=page.get_by_text("Knows our house"))
    expect(anew).to_contain_text("2 memories")
    submit(anew.get_by_role("button", name="Approve"))
    submit(anew.get_by_role("button", name="Mount", exact=True))
    turn = tell(page, QUESTION)
    expect(turn.locator(".answer")).not_to_contain_text("six")
