"""Real pages in a real browser, from a real `manage.py up`."""

import json
import re
import shutil
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, StorageState, expect, sync_playwright

from tests.browser.visit import COUNT_CLICKS, Visit
from tests.harness.product import RunningServer

CHROMIUM = Path("/usr/bin/chromium")
OPEN_SECONDS = 10.0

OpenVisit = Callable[..., Visit]
SignIn = Callable[..., Page]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for a module: Playwright's loop, which Django takes for an async caller, ends with it."""
    found = CHROMIUM if CHROMIUM.exists() else shutil.which("chromium")
    if not found:
        pytest.skip("*** NO CHROMIUM HERE: THE PAGES ARE NOT TRIED IN A BROWSER (apt-get install chromium) ***")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(found), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def server(running_server: RunningServer) -> RunningServer:
    """The installation whose pages this module opens."""
    return running_server


@pytest.fixture(scope="module")
def cookies(chromium: Browser, server: RunningServer) -> StorageState:
    """Return the browser state of a signed-in owner."""
    context = chromium.new_context(base_url=server.base_url)
    page = context.new_page()
    page.goto(sign_in_link(server))
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/overview/")
    state = context.storage_state()
    context.close()
    return state


@pytest.fixture
def visit(chromium: Browser, server: RunningServer, cookies: StorageState) -> Iterator[OpenVisit]:
    """Opens a signed-in window; options as for Playwright's `new_context`. At the end no page has complained."""
    contexts: list[BrowserContext] = []
    visits: list[Visit] = []

    def begin(*, signed_in: bool = True, **options: Any) -> Visit:
        options.setdefault("locale", "en-GB")
        state = cookies if signed_in else None
        context = chromium.new_context(base_url=server.base_url, storage_state=state, **options)
        context.set_default_timeout(OPEN_SECONDS * 1000)
        context.add_init_script(COUNT_CLICKS)
        contexts.append(context)
        visits.append(Visit(context.new_page()))
        return visits[-1]

    yield begin
    complaints = [complaint for each in visits for complaint in each.complaints]
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def page(visit: OpenVisit) -> Page:
    """An ordinary window: English, light, 1280 × 720."""
    return visit().page


@pytest.fixture
def colleague(chromium: Browser, server: RunningServer) -> Iterator[SignIn]:
    """Adds a member with a role, and opens a signed-in window of theirs; options as for Playwright's `new_context`."""
    contexts: list[BrowserContext] = []

    def begin(name: str, role: str, **options: Any) -> Page:
        email = f"{name}-{uuid4().hex[:6]}@home.example"
        tenant = server.first_run["tenant"]
        added = server.manage("member_add", "--tenant", tenant, "--email", email, "--role", role, "--json")
        assert added.returncode == 0, added.stderr
        linked = server.manage("sign_in_link", "--tenant", tenant, "--email", email, "--json")
        assert linked.returncode == 0, linked.stderr
        context = chromium.new_context(base_url=server.base_url, **{"locale": "en-GB", **options})
        context.set_default_timeout(OPEN_SECONDS * 1000)
        contexts.append(context)
        page = context.new_page()
        page.goto(json.loads(linked.stdout)["sign_in_link"])
        page.locator("main button[type=submit]").click()
        expect(page.locator("main button[type=submit]", has_text=re.compile("Sign in|登录"))).to_have_count(0)
        return page

    yield begin
    for context in contexts:
        context.close()


def sign_in_link(server: RunningServer) -> str:
    """A fresh link for the owner."""
    first_run = server.first_run
    done = server.manage("sign_in_link", "--tenant", first_run["tenant"], "--email", first_run["email"], "--json")
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["sign_in_link"])


def memory_add(server: RunningServer, **fields: object) -> str:
    """Store a memory through the API; the path of its page."""
    return f"/memories/{post(server, 'memories/', **fields, allow_duplicates=True)['results'][0]['id']}/"


def post(server: RunningServer, path: str, **fields: object) -> Any:
    """Return the answer of the API to a POST by the owner's key."""
    request = urllib.request.Request(
        f"{server.base_url}/api/v1/{path}",
        data=json.dumps(fields).encode(),
        headers={"Authorization": f"Bearer {server.first_run['api_key']}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)
