"""From the printed link into the product, and out."""

import re
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenVisit, sign_in_link
from tests.harness.product import RunningServer, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.full]


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_a_link_signs_in_once_and_only_by_its_button(server: RunningServer, visit: OpenVisit, scripts: bool) -> None:
    page = visit(signed_in=False, java_script_enabled=scripts).page
    link = sign_in_link(server)
    page.goto(link)
    page.reload()
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    choose_in_account_menu(page, "button", "Sign out")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.goto(link)
    expect(page.get_by_role("heading", name="This link no longer works")).to_be_visible()


def choose_in_account_menu(page: Page, role: Literal["button", "link"], name: str) -> None:
    menu = page.locator("header details.menu").filter(has=page.get_by_label("Your account"))
    menu.locator("summary").click()
    menu.get_by_role(role, name=name).click()


def mailed_link(server: RunningServer, email: str) -> str:
    """The link in the mail to this address, which is a file where no mail server is named."""

    def links() -> list[str]:
        mails = [path.read_text(encoding="utf-8") for path in (server.data_dir / "mail").glob("*")]
        return [link for text in mails if email in text for link in re.findall(r"http://\S+/invitation/\S+", text)]

    wait_until(lambda: bool(links()), seconds=20)
    return links()[0]


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_an_invited_person_sets_a_password_and_comes_back_with_it(
    server: RunningServer, visit: OpenVisit, scripts: bool
) -> None:
    email = f"vera-{'with' if scripts else 'without'}@example.org"
    admin = visit(java_script_enabled=scripts).page
    admin.goto("/settings/members/")
    admin.get_by_label("E-mail address").fill(email)
    admin.get_by_role("button", name="Invite").click()
    expect(admin.get_by_text(f"Hand this link to {email}")).to_be_visible()  # there is no mail server
    link = mailed_link(server, email)
    page = visit(signed_in=False, java_script_enabled=scripts).page
    page.goto(link)
    page.get_by_label("New password").fill("a heron by the mill")
    page.get_by_role("button", name="Join").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    choose_in_account_menu(page, "button", "Sign out")
    page.get_by_label("E-mail address").fill(email)
    page.get_by_label("Password").fill("a heron by the mill")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    choose_in_account_menu(page, "link", "Your account")
    expect(page.get_by_role("heading", name="Sessions")).to_be_visible()
    expect(page.get_by_text("this one")).to_be_visible()


def test_the_language_is_switched_in_place(visit: OpenVisit) -> None:
    page = visit().page
    page.goto("/chat/")
    page.get_by_role("button", name="简体中文").click()
    expect(page.get_by_role("heading", name="问问记住了什么")).to_be_visible()
    page.get_by_role("button", name="English").click()
    expect(page.get_by_role("heading", name="Ask what is remembered")).to_be_visible()


def test_the_colours_follow_the_system_until_the_reader_chooses(visit: OpenVisit) -> None:
    page = visit(color_scheme="dark").page
    page.goto("/chat/")
    root = page.locator("html")
    expect(root).to_have_attribute("data-bs-theme", "dark")
    page.locator("#theme-toggle").click()
    expect(root).to_have_attribute("data-bs-theme", "light")
    page.reload()
    expect(root).to_have_attribute("data-bs-theme", "light")
    page.locator("#theme-toggle").click()
    page.emulate_media(color_scheme="light")
    expect(root).to_have_attribute("data-bs-theme", "light")
