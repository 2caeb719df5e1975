"""Journeys of users from the first page to the last, in a real browser."""

import json
import re
import urllib.request
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenVisit, SignIn, memory_add
from tests.browser.visit import count_clicks, submit
from tests.harness.product import RunningServer

pytestmark = [pytest.mark.browser, pytest.mark.long]


def api(
    server: RunningServer,
    method: str,
    address: str,
    body: Any = None,
    key: str = "",
    headers: Mapping[str, str] | None = None,
) -> tuple[int, Any]:
    request = urllib.request.Request(
        f"{server.base_url}/api/v1/{address}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {key or server.first_run['api_key']}",
            "Content-Type": "application/json",
            **(headers or {}),
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as failure:
        return failure.code, json.load(failure)


@pytest.mark.full
def test_a_grant_lets_a_colleague_see_until_it_is_revoked(page: Page, server: RunningServer, colleague: SignIn) -> None:
    memory = memory_add(server, content="Leo's pen is in the red pouch.")  # in the owner's own namespace
    other = colleague("dora", "viewer")
    address = f"/access{memory.replace('memories', 'memory')}"
    page.goto(address)
    page.locator("#id_holder").select_option(
        label=next(
            label for label in page.locator("#id_holder option").all_text_contents() if label.startswith("member: dora")
        )
    )
    page.get_by_role("button", name="What would change?").click()
    expect(page.get_by_role("status").filter(has_text="could read this.")).to_be_visible()
    denied = other.goto(memory)
    assert denied is not None
    assert denied.status == 404  # as if there were none
    page.get_by_role("button", name="Give", exact=True).click()
    expect(page.locator(".grants tbody tr")).to_have_count(1)
    other.goto(memory)
    expect(other.locator("main")).to_contain_text("red pouch")
    page.get_by_role("button", name="Revoke").click()
    expect(page.locator(".grants")).to_have_count(0)
    refused = other.goto(memory)
    assert refused is not None
    assert refused.status == 404


@pytest.mark.full
def test_a_hold_made_by_search_is_released_by_two(page: Page, server: RunningServer, colleague: SignIn) -> None:
    word = f"pump{uuid4().hex[:6]}"
    memory = memory_add(server, content=f"The {word} leaks.", namespace="/plant")
    second = colleague("sam", "admin")
    page.goto("/holds/")
    page.get_by_role("link", name="Make a legal hold").click()
    page.locator("#find").fill(word)
    page.get_by_role("main").get_by_role("button", name="Search").click()
    page.locator("input[name=memory_id]").first.check()
    page.get_by_label("Reason").fill("Claim 17")
    page.get_by_role("button", name="Count").click()
    expect(page.get_by_role("status")).to_contain_text("1 memory would be held now")
    page.get_by_role("button", name="Hold 1 memory").click()
    page.wait_for_url(re.compile(r"/holds/[0-9a-f-]{36}/"))
    hold = page.url
    expect(page.locator("main")).to_contain_text("active")
    page.get_by_role("button", name="Approve the release").click()
    expect(page.locator("main")).to_contain_text("Another member must approve it too.")
    second.goto(hold)
    second.get_by_role("button", name="Approve the release").click()
    expect(second.locator("main")).to_contain_text("This hold has ended.")
    status, found = api(server, "GET", memory.strip("/") + "/")
    assert status == 200
    assert found["held"] is False
    assert count_clicks(page) <= 6


@pytest.mark.full
def test_the_log_is_filtered_verified_and_exported(page: Page, server: RunningServer) -> None:
    memory_add(server, content="To be found in the log.", namespace="/plant")
    page.goto("/audit/")
    page.get_by_role("group", name="Kind of entry").get_by_role("link", name="Writes").click()
    page.get_by_text("Add filter").click()
    page.locator("select[name=verb]").select_option("memory.created")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator(".entry").first).to_contain_text("added 1 memory in /plant")
    expect(page.locator(".chip-filter")).to_have_count(1)
    page.get_by_role("button", name="Verify now").click()
    expect(page.locator("#verification")).to_contain_text("Intact.")
    page.get_by_role("link", name="Remove the filter Action").click()
    expect(page.locator(".chip-filter")).to_have_count(0)
    page.go_back()
    expect(page.locator(".chip-filter")).to_have_count(1)
    page.goto("/audit/exports/")
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.locator("#exports").get_by_role("link", name="Download").first.click()
    assert download.value.suggested_filename.endswith(".zip")
    assert count_clicks(page) <= 7


@pytest.mark.full
def test_a_policy_that_denies_is_named_with_what_to_do(page: Page, server: RunningServer) -> None:
    place = f"/clinic-{uuid4().hex[:6]}"
    memory = memory_add(server, content="Blood group A.", namespace=place)
    page.goto("/policies/new/purpose/")
    page.get_by_label("Name", exact=True).fill(f"Care only {place}")
    page.get_by_label("Namespace").fill(place)
    page.get_by_label("Purposes").fill("care")
    page.get_by_role("button", name="Show the effect").click()
    expect(page.locator(".policy-words")).to_contain_text(
        f"Memories in {place} can be read for these purposes only: care."
    )
    page.get_by_role("button", name="Save", exact=True).locator("visible=true").last.click()
    page.wait_for_url(re.compile(r"/policies/[0-9a-f-]{36}/"))
    page.goto(memory)
    expect(page.locator("main")).to_contain_text(f"Care only {place}")
    expect(page.locator("main")).to_contain_text("purpose")
    page.goto("/purpose/")
    page.locator("main input[name=purpose]").first.fill("care")
    submit(page.locator("main form button[type=submit]").first)
    page.goto(memory)
    expect(page.locator("main")).to_contain_text("Blood group A.")
    page.goto("/purpose/")
    page.locator("main input[name=purpose]").first.fill("")
    page.locator("main form button[type=submit]").first.click()


def test_find_edit_delete_and_chat_need_no_script(visit: OpenVisit, server: RunningServer) -> None:
    word = f"tram{uuid4().hex[:6]}"
    memory = memory_add(server, content=f"Ana takes the {word}.", namespace="/plant")
    page = visit(java_script_enabled=False).page
    page.goto("/memories/")
    page.locator("#find").fill(word)
    page.locator(".explorer-search").get_by_role("button", name="Search").click()
    page.get_by_role("link", name=re.compile(word)).first.click()
    page.wait_for_url(f"**{memory}")
    page.goto(f"{memory}edit/")
    page.locator("textarea[name=content]").fill(f"Ana takes the {word} and the bus.")
    submit(page.get_by_role("button", name=re.compile("^Save version")))
    page.goto(memory)
    expect(page.locator("main")).to_contain_text("and the bus.")
    page.goto("/chat/")
    page.locator("#question").fill(f"What does Ana take, the {word}?")
    page.locator("form:has(#question) button[type=submit]").first.click()
    expect(page.locator(".turn").first).to_contain_text(word)
    page.goto(f"/memories/?q={word}")
    box = page.locator(f"input[type=checkbox][name=id][value^='{memory.strip('/').rpartition('/')[2]}']")
    box.check()
    page.locator("button[name=action][value=delete]").first.click()
    submit(page.get_by_role("button", name=re.compile(r"^Delete \d")))
    page.goto(f"/memories/?q={word}")
    expect(box).to_have_count(0)


@pytest.mark.full
def test_a_key_is_made_bound_used_and_revoked(page: Page, server: RunningServer) -> None:
    memory_add(server, content="In the plant.", namespace="/plant")
    memory_add(server, content="In the office.", namespace="/office")
    page.goto("/settings/keys/")
    page.get_by_label("Name", exact=True).fill("tablet")
    page.locator("input[name=scopes][value='memories:read']").check()
    page.get_by_text("Choose namespaces").click()
    page.locator("input[name=namespaces][value='/plant']").check()
    page.get_by_role("button", name="Make the key").click()
    key = page.locator("#made-key").inner_text()
    assert key.startswith("mos_")
    status, found = api(server, "GET", "memories/", key=key)
    assert status == 200
    assert {memory["namespace"]["path"] for memory in found["results"]} == {"/plant"}
    row = page.locator("tr", has_text="tablet").first
    expect(row).to_contain_text("/plant")
    page.on("dialog", lambda dialog: dialog.accept())
    row.get_by_role("button", name="Revoke").click()
    expect(page.locator("tr", has_text="tablet").get_by_role("button", name="Revoke")).to_have_count(0)
    assert api(server, "GET", "memories/", key=key)[0] == 401
    assert count_clicks(page) <= 5


def test_a_new_admin_corrects_shares_traces_deletes_and_restores_a_memory(
    page: Page, server: RunningServer, colleague: SignIn
) -> None:
    name = f"Ottilie{uuid4().hex[:6]}"
    memory_add(server, content=f"{name} takes sugar in her coffee.", namespace="/plant")
    colleague("marc", "viewer")
    page.goto("/overview/")
    page.locator("#search").click()
    page.keyboard.type(name)
    page.get_by_role("option", name=re.compile("^Show all")).click()
    page.locator("#rows .memory-text").first.click()
    page.locator("#reader").get_by_role("link", name="Open", exact=True).click()
    page.wait_for_url(re.compile(r"/memories/[0-9a-f-]{36}/$"))
    memory = page.url
    page.get_by_role("link", name="Edit").first.click()
    page.locator("#edit-content").fill(f"{name} takes milk in her coffee.")
    page.get_by_role("button", name=re.compile("^Save version")).click()
    expect(page.locator(".diff ins")).to_have_text("milk")
    page.get_by_role("link", name="Add a grant").click()
    options = page.locator("#id_holder option").all_text_contents()
    page.locator("#id_holder").select_option(
        label=next(option for option in options if option.startswith("member: marc"))
    )
    page.get_by_role("button", name="Give", exact=True).click()
    expect(page.locator(".grants tbody tr")).to_contain_text("may read")
    page.goto(memory)
    readers = page.locator("section[aria-labelledby=readers-title]")
    readers.scroll_into_view_if_needed()
    expect(readers).to_contain_text("Versions compared")
    page.get_by_role("button", name="Delete…").click()
    expect(page.locator(".bulk-form")).to_contain_text(f"{name} takes milk")
    page.get_by_role("button", name="Delete 1").click()
    expect(page.locator(".toast")).to_contain_text("1 memory deleted")
    submit(page.locator(".toast").get_by_role("button", name=re.compile("Undo")))
    page.goto(memory)
    expect(page.locator(".memory-content .content")).to_have_text(f"{name} takes milk in her coffee.")
    assert count_clicks(page) <= 11


@pytest.mark.full
def test_a_memory_is_corrected_deleted_and_restored_by_keyboard(page: Page, server: RunningServer) -> None:
    word = f"Cello{uuid4().hex[:6]}"
    memory_add(server, content=f"{word} lessons are on Fridays.", namespace="/plant")
    page.goto("/overview/")
    page.keyboard.press("/")
    page.keyboard.type(word)
    expect(page.locator("#palette-memory-1 mark").first).to_have_text(word)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/memories/[0-9a-f-]{36}/$"))
    page.wait_for_load_state()
    page.keyboard.press("e")
    expect(page.locator("#edit-content")).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type(f"{word} lessons are on Mondays.")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".diff ins")).to_have_text("Mondays")
    page.keyboard.press("#")
    expect(page.get_by_role("button", name="Delete 1")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".toast")).to_contain_text("1 memory deleted")
    page.keyboard.press("z")
    expect(page.locator(".toast")).to_contain_text("1 memory restored")
