"""Invitations and organisations' own ways in set up nothing of a person, and tell nothing of other organisations."""

import re
from collections.abc import Callable
from urllib.parse import urlsplit

import psycopg
import pytest
from django.core import mail
from django.test import Client, override_settings

from governance.actor import Actor
from governance.database import acting
from governance.errors import AddressNotProved
from governance.members.services import invitation_accept, invitation_create
from governance.models import Invitation, Member
from governance.tenants.services import sign_in_link_create
from governance.vocabulary import RoleName
from tests.factories import REQUEST_ID, Person, World, person_add
from tests.governance.accounts.oidc_server import OidcServer
from tests.governance.accounts.people import (
    ADDRESS,
    PASSWORD,
    browser,
    find_entries,
    find_mailed_link,
    give_password,
    is_in,
    set_up_factor,
    sign_in,
    token_of,
)
from tests.governance.accounts.test_oidc import come_back, provider_server, server  # noqa: F401
from tests.governance.filled_tenants import drain
from tests.governance.tables import read_all_rows
from tests.governance.web.visitors import signed_in

Superuser = Callable[[], psycopg.Connection]
WITHOUT_TOKEN = re.compile(
    r'name="csrfmiddlewaretoken" value="[^"]+"|[0-9a-f]{8}-[0-9a-f-]{27}|/invitation/[\w-]+/|<time.*?</time>', re.DOTALL
)
VERA = "vera@acme.example"


def _link_by(maker: Actor, person: Person) -> Client:
    """A browser in which a sign-in link that `maker` made for `person` was opened."""
    client = browser()
    client.post(urlsplit(sign_in_link_create(actor=maker, member=person.member).url).path)
    return client


def _text(client: Client, address: str) -> str:
    return WITHOUT_TOKEN.sub("", client.get(address).content.decode())


def test_inviters_link_lets_nobody_in_and_sets_nothing(world: World, superuser: Superuser) -> None:
    made = invitation_create(actor=world.olivia.actor, email=VERA, role=RoleName.EDITOR)
    link, client = "/invitation/" + token_of(made.url) + "/", browser()
    before = read_all_rows(superuser())
    assert 'name="new"' not in client.get(link).content.decode()
    assert client.post(link, {"new": PASSWORD}).status_code == 403
    with pytest.raises(AddressNotProved):
        invitation_accept(token=token_of(made.url), request_id=REQUEST_ID, address=ADDRESS)
    assert not is_in(client)
    assert read_all_rows(superuser()) == before
    drain()
    assert client.post(find_mailed_link(VERA), {"new": PASSWORD}).status_code == 303
    assert is_in(client)
    assert is_in(sign_in(VERA))


@override_settings(EMAIL_HOST="")
@pytest.mark.parametrize("name", ["nobody", "charlie"])
def test_inviters_link_without_a_mail_server_opens_one_organisation_and_sets_nothing(
    world: World, superuser: Superuser, name: str
) -> None:
    """charlie has a password, a second factor and another organisation: nothing of it shows, or opens."""
    email = VERA if name == "nobody" else world.charlie.email
    if name == "charlie":
        give_password(world.charlie)
        set_up_factor(sign_in(world.charlie.email))
    made = invitation_create(actor=world.olivia.actor, email=email, role=RoleName.VIEWER)
    link, client, before = "/invitation/" + token_of(made.url) + "/", browser(), _guards(superuser)
    assert 'name="new"' not in client.get(link).content.decode()
    joined = client.post(link, {"new": PASSWORD})
    assert (joined.status_code, joined["Location"]) == (303, "/overview/")
    assert is_in(client)
    assert b"Other" not in client.get("/account/organisations/").content
    assert client.get("/account/second-factor/").status_code == 403
    assert client.post("/account/password/", {"new": PASSWORD}).status_code == 403
    guards = _guards(superuser)
    assert guards == before if name == "charlie" else guards[1] == before[1]
    assert client.post(link).status_code == 404, "the link works once"
    with acting(world.olivia.actor):
        assert Member.objects.get(user__email=email, tenant_id=world.acme.id).proved_at is None


@pytest.mark.parametrize("way", ["link", "sign-in server"])
def test_admin_sets_up_neither_password_nor_factor_of_another(
    world: World,
    provider_server: OidcServer,  # noqa: F811
    superuser: Superuser,
    way: str,
) -> None:
    client = _link_by(world.olivia.actor, world.alice) if way == "link" else browser()
    if way == "sign-in server":
        come_back(provider_server, client)
    assert is_in(client)
    before = _guards(superuser)
    for address, body in (
        ("/account/password/", {"new": PASSWORD}),
        ("/account/second-factor/", {"code": "123456"}),
        ("/account/second-factor/remove/", {"code": "123456"}),
        ("/account/second-factor/codes/", {"code": "123456"}),
        ("/account/sessions/end-others/", {}),
    ):
        assert client.post(address, body).status_code == 403, address
    assert client.get("/account/second-factor/").status_code == 403
    assert _guards(superuser) == before
    assert "Send the link" in client.get("/account/").content.decode()


def _guards(superuser: Superuser) -> tuple[object, object]:
    rows = superuser().execute("SELECT id, password, password_tenant FROM governance_user ORDER BY id").fetchall()
    return rows, superuser().execute("SELECT count(*) FROM mfa_authenticator").fetchone()


def test_operators_link_is_the_persons_own(world: World) -> None:
    client = signed_in(world.alice)
    assert client.post("/account/password/", {"new": PASSWORD}).status_code == 303
    set_up_factor(client)


def test_nothing_tells_an_organisation_that_a_person_has_an_account_elsewhere(
    world: World, superuser: Superuser
) -> None:
    """charlie has a password, a second factor and a session in another organisation; vera is new here and there."""
    give_password(world.charlie)
    set_up_factor(sign_in(world.charlie.email))
    shown: list[tuple[str, int, bool]] = []
    for email in (world.charlie.email, "charles@other.example"):
        mail.outbox.clear()
        reply = world.client("olivia").post("invitations/", {"email": email, "role": "viewer"})
        page = _text(browser(), urlsplit(reply.json["link"]).path)
        drain()
        mails = [re.sub(r"https?://\S+|\d", "", str(message.body)) for message in mail.outbox]
        member = person_add(world.acme, email, RoleName.VIEWER)  # by the operator, or the organisation's server
        client = _link_by(world.olivia.actor, member)
        account = _text(client, "/account/") + _text(client, "/account/organisations/")
        code = client.get("/account/second-factor/").status_code
        rows = [find_entries(superuser, verb, member.member.id) for verb in ("member.signed_in", "sign_in_link.used")]
        for row in rows[0]:
            row.pop("session")
        tell = re.sub("charlie|charles", "", f"{sorted(reply.json)} {reply.status} {page} {mails} {account} {rows}")
        shown.append((tell, code, is_in(client)))
    assert shown[0] == shown[1]
    assert shown[0][2]


def test_second_factor_is_asked_once_the_person_has_come_by_themselves(world: World) -> None:
    member = person_add(world.acme, world.charlie.email, RoleName.VIEWER)
    give_password(world.charlie)
    own = sign_in(world.charlie.email)
    own.post("/sign-in/~/organisation/", {"organisation": world.charlie.member.id})
    set_up_factor(own)
    assert is_in(_link_by(world.olivia.actor, member))
    assert own.post("/account/organisations/", {"organisation": member.member.id}).status_code == 303
    assert not is_in(_link_by(world.olivia.actor, member)), "the organisation's link asks for the second factor now"


def test_new_invitation_of_an_address_replaces_the_earlier_one(world: World, superuser: Superuser) -> None:
    first = invitation_create(actor=world.olivia.actor, email=VERA, role=RoleName.ADMIN)
    drain()
    earlier = find_mailed_link(VERA)
    invitation_create(actor=world.olivia.actor, email="bert@acme.example", role=RoleName.VIEWER)
    second = invitation_create(actor=world.olivia.actor, email=VERA.upper(), role=RoleName.VIEWER)
    drain()
    listed = world.client("olivia").get("invitations/").json["results"]
    assert [invitation["email"] for invitation in listed] == [VERA.upper(), "bert@acme.example"]
    assert {invitation["role"] for invitation in listed} == {"viewer"}
    for link in (earlier, "/invitation/" + token_of(first.url) + "/"):
        assert browser().post(link, {"new": PASSWORD}).status_code == 404
    assert browser().post(find_mailed_link(VERA.upper()), {"new": PASSWORD}).status_code == 303
    assert find_entries(superuser, "invitation.revoked") == [{"replaced": True}]
    with acting(world.olivia.actor):
        assert Invitation.objects.get(id=second.view.id).accepted_at is not None


def test_asking_for_a_new_password_is_on_the_log_of_each_organisation_alike(world: World, superuser: Superuser) -> None:
    joined = person_add(world.other, world.alice.email, RoleName.VIEWER)
    browser().post("/sign-in/~/forgotten/", {"email": world.alice.email})
    rows = superuser().execute("SELECT object_ids FROM governance_auditentry WHERE verb = 'password.reset_asked'")
    assert sorted(row[0][0] for row in rows) == sorted([world.alice.member.id, joined.member.id])
    drain()
    assert len(mail.outbox) == 1
