"""Every page of the demo in a browser: axe finds nothing serious, nothing is cut off, and the console is silent."""

import itertools
import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from governance.web.navigation import GROUPS, SETTINGS, address_of
from scripts.screenshots import PAGES, SHOWN, pages_found
from tests.browser.looks import SCHEMES, WIDTHS
from tests.browser.test_accessibility import findings
from tests.browser.visit import Visit
from tests.harness.product import RunningServer, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.long]

# Pages that no picture shows: forms, tabs, and pages that ask before they act.
MORE = (
    "/store/?q=travel&order=newest",
    "/store/installed/",
    "/store/contracts/",
    "/store/moderation/",
    "/store/open-shelf/house-plants/",
    "/store/open-shelf/house-plants/try/",
    "/store/open-shelf/house-plants/report/",
    "/jobs/?list=all",
    "/jobs/?list=dead",
    "/jobs/schedules/new/",
    "/access/recall/",
    "/audit/?kind=writes&verb=memory.created",
    "/policies/new/retention/",
    "/policies/new/purpose/",
    "/policies/new/pii/",
    "/policies/new/sharing/",
    "/policies/new/quota/",
    "/policies/{policy}/versions/",
    "/holds/new/?q=glaze",
    "/holds/new/?over=query",
    "/holds/new/?over=subject",
    "/namespaces/new/",
    "/personas/{persona}/delete/",
    "/layers/{persona}/profile/",
    "/graph/?view=list",
    "/chat/{conversation}/rename/",
    "/chat/{conversation}/delete/",
    "/account/second-factor/",
    "/account/organisations/",
    "/purpose/",
    "/you/",
    "/docs/",
    "/docs/guides/first-memory/",
    "/docs/policies/",
    "/nope/",
)
# Text that people read, without code and documents.
READ_TEXTS = """() => {
  const texts = [];
  const walker = document.createTreeWalker(document.querySelector("main") ?? document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    if (!walker.currentNode.parentElement.closest("code, pre, script, style, textarea, .docs"))
      texts.push(walker.currentNode.textContent.trim());
  }
  return texts.filter(text => text);
}"""
FOR_MACHINES = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d|[0-9a-f]{8}(-[0-9a-f]{4}){3}-|[{\[]\"|\b(?:[a-z]+_)+(?:id|ids|at|kind)\b"
)
UNBUILT = ("/exchange/", "/integrations/")  # in the list of pictures before they are there
DESK_LIGHT, PHONE_DARK = ("desk", "light"), ("phone", "dark")
# Colours of links change over 150 ms in Django's admin: until then axe would measure one on the way.
SETTLED = """() => Promise.all(document.getAnimations()
  .filter(one => one.effect.getComputedTiming().endTime !== Infinity)
  .map(one => one.finished.catch(() => null))).then(() => null)"""
EVERY_LOOK = [(width, scheme) for width in WIDTHS for scheme in SCHEMES]


@pytest.fixture(scope="module")
def demo(chromium: Browser, server: RunningServer) -> Iterator[tuple[Visit, dict[str, str]]]:
    """A window of the owner of the demo, who is an operator too, and the addresses of its pages by name."""
    filled = server.manage("demo", "--json")
    assert filled.returncode == 0, filled.stderr
    owner = json.loads(filled.stdout)["people"][0]
    assert server.manage("operator_set", "--email", owner["email"]).returncode == 0
    context = chromium.new_context(base_url=server.base_url, locale="en-GB")
    context.set_default_timeout(15_000)
    visit = Visit(context.new_page())
    visit.page.goto(owner["sign_in_link"])
    visit.page.get_by_role("button", name="Sign in").click()
    visit.page.wait_for_url("**/overview/")
    wait_until(lambda: is_subscribed(context), seconds=60)
    found = pages_found(context)
    rows = pages_found(context, {address: address for address in MORE})
    yield visit, found | rows
    context.close()


def is_subscribed(context: BrowserContext) -> bool:
    """True once the pack of the demo is installed, by a job."""
    subscriptions = context.request.get("/api/v1/subscriptions/").json().get("results", [])
    return [subscription["state"] for subscription in subscriptions] == ["active"]


def complaints_of(page: Page, look: tuple[str, str]) -> list[str]:
    width, scheme = look
    page.set_viewport_size(WIDTHS[width])
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
    page.wait_for_function(SHOWN, arg=scheme)
    page.evaluate(SETTLED)
    found = findings(page)
    if not page.evaluate("document.documentElement.scrollWidth <= innerWidth"):
        found.append(f"{page.url} is too wide")
    return [f"{width}, {scheme}: {complaint}" for complaint in found]


@pytest.mark.parametrize(
    "looks",
    [
        pytest.param([], id="some-looks"),  # none, light on a desktop, none, dark on a phone by turns
        pytest.param(EVERY_LOOK, id="every-look", marks=pytest.mark.full),
    ],
)
def test_no_page_has_a_serious_finding_or_complains(
    demo: tuple[Visit, dict[str, str]], looks: list[tuple[str, str]], pytestconfig: pytest.Config
) -> None:
    visit, addresses = demo
    found: list[str] = []
    turns = itertools.cycle([[], [DESK_LIGHT], [], [PHONE_DARK]])
    for _ in range(pytestconfig.option.seed % 4):
        next(turns)
    for name, address in addresses.items():
        answer = visit.page.goto(address)
        assert answer is not None
        if answer.status == 404 and address in UNBUILT:
            continue
        if answer.status != (404 if address == "/nope/" else 200):
            found.append(f"{name}: {answer.status} {address}")
            continue
        for_machines = [text[:80] for text in visit.page.evaluate(READ_TEXTS) if FOR_MACHINES.search(text)]
        found += [f"{name}: {text!r} is for machines" for text in for_machines]
        for look in looks or next(turns):
            found += complaints_of(visit.page, look)
    assert found + visit.complaints == []


def test_every_page_of_the_side_bar_is_in_the_screenshots() -> None:
    pictured = {address.partition("?")[0] for address in PAGES.values()}
    places = [page for group in GROUPS for page in group.pages] + [*SETTINGS]
    there = {address_of(page.name) for page in places} - {""}
    assert there <= pictured
