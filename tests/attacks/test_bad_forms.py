"""Row 14 for the pages: whatever is typed into any form is answered by a page, and never with 5xx."""

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from http import HTTPStatus
from random import Random

import psycopg
import pytest
from django.test import Client

from tests.attacks.forms import Form, forms_of, submissions
from tests.factories import Person, World
from tests.governance.filled_tenants import fill
from tests.governance.tenant_crossings import API, ENDING, Ids, fill_in, ids_of, routes, text_of
from tests.governance.web.visitors import signed_in
from tests.harness.evidence import Evidence

pytestmark = pytest.mark.full
Superuser = Callable[[], psycopg.Connection]
SMALL, FULL = 1, 60  # made-up bodies for each form
ANSWERS = frozenset({200, 202, 204, 302, 303, 400, 403, 404, 405, 409, 412, 413, 422, 423, 428, 429})
LEAVING = ("/sign-out/", "/account/")


def pages() -> list[str]:
    return sorted({route for route in routes() if not route.startswith((API, "static/"))})


def forms_on_pages(browser: Client, ids: Ids) -> dict[tuple[str, str, tuple[str, ...]], Form]:
    """Each form of the pages that `browser` may open, once, by method, action and names of its fields."""
    found = {}
    for route in pages():
        address = "/" + fill_in(route, ids)
        reply = browser.get(address)
        if reply.status_code == HTTPStatus.OK and reply.headers.get("Content-Type", "").startswith("text/html"):
            for form in forms_of(text_of(reply), address):
                found[form.method, form.action, form.names] = form
    return found


def sort_forms(forms: Iterator[Form]) -> list[Form]:
    """Return the forms, with those last that end something, so that earlier ones have an object."""
    return sorted(forms, key=lambda form: (bool(ENDING.search(form.action)), form.action, form.names))


class Sender:
    """Sends made-up bodies as `person`, who signs in again whenever a form has signed them out."""

    def __init__(self, person: Person) -> None:
        self.person = person
        self.browser = signed_in(person)
        self.statuses: Counter[int] = Counter()
        self.faults: list[str] = []

    def send(self, form: Form, body: bytes) -> None:
        if form.method == "post":
            reply = self.browser.post(form.action, body, content_type="application/x-www-form-urlencoded")
        else:
            reply = self.browser.get(f"{form.action}?{body.decode()}")
        text = text_of(reply)
        self.statuses[reply.status_code] += 1
        if reply.status_code not in ANSWERS:
            self.faults.append(f"{form.method} {form.action} {body[:300]!r}: {reply.status_code}")
        elif reply.status_code == HTTPStatus.UNPROCESSABLE_ENTITY and "<" not in text:
            self.faults.append(f"{form.method} {form.action} {body[:300]!r}: 422 without a page")
        if form.action.startswith(LEAVING) or self.browser.get("/you/").status_code != HTTPStatus.OK:
            self.browser = signed_in(self.person)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Refusals are logged one by one."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize(("name", "least"), [("bob", 20), ("olivia", 80)])
def test_bad_input_to_any_form_is_answered_by_a_page(
    world: World, superuser: Superuser, name: str, least: int, full_size: bool, evidence: Evidence
) -> None:
    ids = ids_of(superuser(), fill(world.olivia, "canary"), "acme")
    sender, random = Sender(world.person(name)), Random(4)
    forms = sort_forms(iter(forms_on_pages(sender.browser, ids).values()))
    for form in forms:
        for body in submissions(form, random, FULL if full_size else SMALL):
            sender.send(form, body)
    assert sender.faults == []
    assert len(forms) >= least
    figures = {"forms": len(forms), "submissions": sender.statuses.total(), "failures": 0}
    answers = {f"answered {status}": count for status, count in sorted(sender.statuses.items())}
    evidence(row=14, name=f"bad-forms-{name}", figures=figures | answers)


def test_a_page_that_fails_on_input_shows(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: a service that fails where it should refuse."""

    def fail(**_: object) -> None:
        raise ValueError("a fault of the program")

    monkeypatch.setattr("governance.web.recovery.password_reset_ask", fail)
    sender = Sender(world.bob)
    sender.send(Form("post", "/sign-in/~/forgotten/", ()), b"email=bob%40acme.example")
    assert [fault.rpartition(": ")[2] for fault in sender.faults] == ["500"]


@pytest.mark.parametrize(
    ("method", "address", "body"),
    [
        ("post", "/memories/views/", b"name=n&query=//["),
        ("post", "/memories/bulk/", b"action=tag&all=yes&query=http://[::1"),
        ("get", "/access/recall/", b"as=role:%00&q=a"),
        ("get", "/memories/", b"created_after=0001-01-01&created_before=0001-01-01"),
        ("get", "/audit/", b"from=0001-01-01&to=0001-01-01"),
    ],
)
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
def test_what_is_no_address_role_or_time_is_answered(
    world: World, superuser: Superuser, method: str, address: str, body: bytes, zone: str
) -> None:
    superuser().execute("UPDATE governance_member SET timezone = %s", [zone])
    sender = Sender(world.olivia)
    sender.send(Form(method, address, ()), body)
    assert sender.faults == []


def test_mail_address_with_a_nul_byte_is_answered(world: World) -> None:
    sender = Sender(world.bob)
    sender.send(Form("post", "/sign-in/~/forgotten/", ()), b"email=bob%00%40acme.example")
    assert sender.faults == []
