"""Two different members are two persons: who governs cannot be the second member too, by whatever they make for one."""

import re
from collections.abc import Callable
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import pytest
from django.core import mail
from django.test import Client

from governance.database import acting
from governance.members.stand_in import WayIn, can_belong_to_another
from governance.models import AuditEntry
from governance.vocabulary import Outcome, RoleName, Scope
from tests.factories import Person, World, client_for, person_add
from tests.governance.accounts.people import browser, find_mailed_link, give_password, is_in, sign_in, token_of
from tests.governance.filled_tenants import drain
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract
from vault.models import HoldReleaseApproval

Attempt = Callable[["Case"], int]
ALL = list(Scope)


class Case:
    """A hold of olivia's that adam, an admin, has approved the release of; sam, another admin, has not."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.adam = person_add(world.acme, "adam@acme.example", RoleName.ADMIN)
        self.sam = person_add(world.acme, "sam@acme.example", RoleName.ADMIN)
        self.as_adam = Contract(key=self.adam.key.text)
        made = Contract(key=world.olivia.key.text).post("holds/", {"reason": "Case 17.", "subject": "carla"})
        self.hold_id = made.json["id"]
        assert self.release(self.adam.key.text) == 202

    def release(self, key: str) -> int:
        reply = Contract(key=key).post(f"holds/{self.hold_id}/release/")
        assert reply.status != 403 or reply.code == "own_hand_needed"
        return reply.status

    def release_in(self, client: Client) -> int:
        assert is_in(client)
        return client.post(f"/holds/{self.hold_id}/release/").status_code

    def approvals(self) -> list[UUID]:
        with acting(self.world.olivia.actor):
            found = HoldReleaseApproval.objects.filter(hold_id=self.hold_id).order_by("id")
            return list(found.values_list("member_id", flat=True))

    def key_for_sam(self, maker: str = "") -> str:
        body = {"member": str(self.sam.member.id), "scopes": ALL}
        reply = client_for(maker or self.adam.key.text).post("api-keys/", body)
        assert reply.status == 201, reply
        text: str = reply.json["api_key"]
        return text

    def browser_of_sam(self) -> Client:
        """Adam makes a link for sam, and opens it himself."""
        page = signed_in(self.adam).post(f"/settings/members/{self.sam.member.id}/link/").content.decode()
        found = re.search(r"https?://[^<\"\s]*/sign-in/[^<\"\s]+", page)
        assert found is not None
        client = browser()
        client.post(urlsplit(found[0]).path)
        return client


@pytest.fixture
def case(world: World) -> Case:
    return Case(world)


def by_a_key(case: Case) -> int:
    return case.release(case.key_for_sam())


def by_a_key_made_with_that_key(case: Case) -> int:
    return case.release(case.key_for_sam(case.key_for_sam()))


def by_a_rotated_key(case: Case) -> int:
    reply = case.as_adam.post(f"api-keys/{case.sam.key.id}/rotate/", {"overlap_seconds": 60})
    return case.release(reply.json["api_key"])


def by_a_key_rotated_with_that_key(case: Case) -> int:
    own = case.sam.key.id
    reply = client_for(case.key_for_sam()).post(f"api-keys/{own}/rotate/", {"overlap_seconds": 60})
    return case.release(reply.json["api_key"])


def by_a_link(case: Case) -> int:
    return case.release_in(case.browser_of_sam())


def by_a_key_made_behind_a_link(case: Case) -> int:
    return case.release(key_on_the_page(case.browser_of_sam(), case))


ATTEMPTS: list[Attempt] = [
    by_a_key,
    by_a_key_made_with_that_key,
    by_a_rotated_key,
    by_a_key_rotated_with_that_key,
    by_a_link,
    by_a_key_made_behind_a_link,
]


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda row: row.__name__)
def test_an_admin_is_not_the_second_member_too(case: Case, attempt: Attempt) -> None:
    assert attempt(case) == 403
    assert case.approvals() == [case.adam.member.id]
    with acting(case.world.olivia.actor):
        denied = AuditEntry.objects.filter(outcome=Outcome.DENIED, member_id=case.sam.member.id)
        assert [row.detail["rule"] for row in denied] == ["stand_in"]


def test_nor_the_first_one(world: World) -> None:
    case = Case(world)
    other = Contract(key=world.olivia.key.text).post("holds/", {"reason": "Case 18.", "subject": "dora"}).json["id"]
    case.hold_id = other
    assert by_a_key(case) == 403
    assert case.release(case.adam.key.text) == 202
    assert case.approvals() == [case.adam.member.id]


def test_password_reset_is_mailed_to_the_member_only(case: Case) -> None:
    """The mail goes to sam, whoever asks, and adam's page does not mention it."""
    page = signed_in(case.adam).post("/sign-in/~/forgotten/", {"email": case.sam.email})
    assert page.status_code == 200
    drain()
    assert [message.to for message in mail.outbox] == [[case.sam.email]]
    assert token_of(find_mailed_link()) not in page.content.decode()


def key_on_the_page(client: Client, case: Case) -> str:
    """A key for sam, made in this browser."""
    body = {"member": str(case.sam.member.id), "scopes": ALL, "name": "own"}
    page = client.post("/settings/keys/", body).content.decode()
    found = re.search(r"mos_[0-9a-f]+_[\w-]+", page)
    assert found is not None
    return found[0]


def test_the_operators_key_counts(case: Case) -> None:
    assert case.release(case.sam.key.text) == 200
    assert case.approvals() == [case.adam.member.id, case.sam.member.id]


def test_the_members_own_key_counts(case: Case) -> None:
    assert case.release(key_on_the_page(signed_in(case.sam), case)) == 200
    assert case.approvals() == [case.adam.member.id, case.sam.member.id]


def test_a_key_that_another_made_takes_nothing_from_the_members_own_session(case: Case) -> None:
    case.key_for_sam()
    assert case.release_in(signed_in(case.sam)) == 303
    assert case.approvals() == [case.adam.member.id, case.sam.member.id]


def test_behind_anothers_link_a_key_of_before_counts(case: Case) -> None:
    case.browser_of_sam()
    assert case.release(case.sam.key.text) == 200


def test_behind_anothers_link_a_password_by_mail_counts(case: Case) -> None:
    case.browser_of_sam()
    give_password(case.sam)
    assert case.release_in(sign_in(case.sam.email)) == 303
    assert case.approvals() == [case.adam.member.id, case.sam.member.id]


KEY, OTHER = uuid4(), uuid4()


def way(key: UUID | None = None, *, by_other: bool = False, by_key: bool = False) -> WayIn:
    return WayIn(key, by_other=by_other, by_key=by_key)


@pytest.mark.parametrize(
    ("ways", "key", "session"),
    [
        ([], False, False),
        ([way(KEY)], False, False),
        ([way(KEY, by_key=True)], False, False),
        ([way()], False, False),
        ([way(KEY, by_other=True)], True, False),
        ([way(OTHER, by_other=True), way(KEY)], False, False),
        ([way(OTHER, by_other=True), way(KEY, by_key=True)], True, False),
        ([way(KEY), way(KEY, by_other=True)], True, False),
        ([way(by_other=True)], False, True),
        ([way(by_other=True), way(KEY)], True, True),
        ([way(KEY), way(by_other=True)], False, True),
        ([way(KEY), way(by_other=True), way(KEY)], True, True),
    ],
)
def test_what_another_made_is_shared_and_so_is_what_was_made_with_it(
    ways: list[WayIn], key: bool, session: bool
) -> None:
    assert (can_belong_to_another(ways, key_id=KEY), can_belong_to_another(ways, key_id=None)) == (key, session)


def test_the_page_says_why(case: Case) -> None:
    client = case.browser_of_sam()
    page = client.post(f"/holds/{case.hold_id}/release/").content.decode()
    assert "Two different persons release a legal hold." in page


def test_another_tenants_ways_are_nobodys_here(world: World, case: Case) -> None:
    """A person of two organisations: what one's admin makes opens that one alone."""
    guest: Person = person_add(world.other, "sam@acme.example", RoleName.ADMIN)
    page = signed_in(world.charlie).post(f"/settings/members/{guest.member.id}/link/")
    assert page.status_code == 200
    client = signed_in(case.sam)
    client.post("/sign-in/~/organisation/", {"organisation": case.sam.member.id})
    assert case.release_in(client) == 303
