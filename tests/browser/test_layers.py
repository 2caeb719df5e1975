"""The page of one persona's mind: what moves on is there, and axe finds nothing serious."""

import json
import urllib.request
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenVisit
from tests.browser.test_accessibility import DESK, PHONE, findings
from tests.harness.product import RunningServer

pytestmark = [pytest.mark.browser, pytest.mark.full]

TALK = (
    ("My name is Maya Okafor. I live in Sheffield.", "Noted."),
    ("I love running along the river before work.", "I recommend the path by the mill."),
    ("The cello lesson of Ada was moved to Friday.", "I will remember Friday."),
    ("The tomatoes in the garden need water in the evening.", "Noted."),
    ("I enjoy cooking vegetarian dinners.", "Noted."),
    ("What does Leo need for the museum trip?", "A packed lunch without nuts, and the form."),
    ("The garden fence broke in the storm.", "Noted."),
    ("我每周三晚上上瑜伽课。", "记下了。"),
    ("Book the winter tyres for next week.", "Noted."),
    ("Is the form signed?", "Not yet."),
)
LOOKS = [
    pytest.param({"color_scheme": "light", "viewport": DESK}, id="light-desk"),
    pytest.param({"color_scheme": "dark", "viewport": PHONE}, id="dark-phone"),
]


def call(server: RunningServer, method: str, path: str, body: object = None) -> Any:
    headers = {"Authorization": f"Bearer {server.first_run['api_key']}", "Content-Type": "application/json"}
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(f"{server.base_url}/api/v1/{path}", data=data, method=method, headers=headers)
    with urllib.request.urlopen(request, timeout=20) as reply:
        return json.loads(reply.read())


@pytest.fixture(scope="module")
def mind(server: RunningServer) -> str:
    persona = str(call(server, "GET", "personas/?kind=user")["results"][-1]["id"])
    call(server, "PATCH", f"personas/{persona}/settings/", {"stm_pages": 4, "tau": 1.5})
    for question, answer in TALK:
        messages = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
        call(server, "POST", "memories/", {"session_id": "week plan", "messages": messages})
    return persona


@pytest.mark.parametrize("look", LOOKS)
def test_layers_have_no_serious_finding(
    server: RunningServer, visit: OpenVisit, mind: str, look: dict[str, Any]
) -> None:
    page = visit(**look).page
    for _ in range(40):  # the worker distils
        page.goto("/layers/")
        if page.locator(".profile").count():
            break
        page.wait_for_timeout(500)
    assert page.locator(".queue-page:not(.is-leaving)").count() == 4
    assert page.locator(".segment").count() > 0
    assert "Maya Okafor" in page.locator(".profile").inner_text()
    found = findings(page)
    for part in ("traits", "profile", "tune"):
        page.goto(f"/layers/{mind}/{part}/")
        found += findings(page)
    assert found == []


@pytest.mark.parametrize(
    ("question", "answer"),
    [("When does the ferry leave for Naxos?", "At nine."), ("去纳克索斯的渡轮几点开？", "九点。")],
    ids=["English", "Chinese"],
)
def test_page_that_moves_on_is_shown_without_a_reload(
    server: RunningServer, visit: OpenVisit, mind: str, question: str, answer: str
) -> None:
    page = visit(viewport=DESK).page
    page.goto(f"/layers/?persona={mind}")
    leaving = page.locator(".queue-page:not(.is-leaving)").last.locator(".queue-ask").inner_text()
    messages = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    call(server, "POST", "memories/", {"session_id": "week plan", "messages": messages})
    expect(page.locator(".queue-page").first).to_contain_text(question, timeout=20_000)
    expect(page.locator(".queue-page.is-leaving")).to_contain_text(leaving)
    expect(page.locator(".segment.is-target")).to_contain_text("+1 now", timeout=20_000)


def test_owner_edits_the_profile_and_replays_other_settings_without_scripts(
    server: RunningServer, visit: OpenVisit, mind: str
) -> None:
    page = visit(viewport=DESK, java_script_enabled=False).page
    page.goto(f"/layers/{mind}/profile/")
    page.get_by_label("Name of the field").fill("motto")
    page.get_by_label("Value").fill("Slowly but surely")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".profile")).to_contain_text("Slowly but surely")
    page.get_by_role("link", name="Tune").click()
    present = call(server, "GET", f"personas/{mind}/settings/")["stm_pages"]
    page.locator("[name=stm_pages]").fill("2")
    page.get_by_role("button", name="Try").click()
    expect(page.get_by_role("row").filter(has_text="Pages in queues").locator(".is-other")).to_be_visible()
    assert call(server, "GET", f"personas/{mind}/settings/")["stm_pages"] == present
