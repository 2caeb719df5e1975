"""Audited or refused, for accounts: where the audit log cannot be written nobody gets in and nothing changes."""

from collections.abc import Callable

import psycopg
import pytest
from django.urls import URLPattern

from governance.api.urls import urlpatterns as routes_of_the_law
from governance.members.services import invitation_create
from governance.vocabulary import RoleName
from tests.factories import World
from tests.governance.accounts.people import browser, find_mailed_link, give_password, is_in, set_up_factor, sign_in
from tests.governance.filled_tenants import drain
from tests.governance.tables import read_all_rows
from tests.governance.web.visitors import link_for, signed_in

Superuser = Callable[[], psycopg.Connection]
METHODS = ("get", "post", "patch", "delete")
CALLS: dict[tuple[str, str], tuple[str, object]] = {
    ("members/", "get"): ("members/", None),
    ("invitations/", "post"): ("invitations/", {"email": "vera@acme.example", "role": "viewer"}),
    ("members/<uuid:member_id>/", "patch"): ("members/{member}/", {"role": "editor"}),
    ("members/<uuid:member_id>/", "delete"): ("members/{member}/", None),
    ("invitations/", "get"): ("invitations/", None),
    ("invitations/<uuid:invitation_id>/", "delete"): ("invitations/{invitation}/", None),
    ("api-keys/", "get"): ("api-keys/", None),
    ("api-keys/", "post"): ("api-keys/", {"scopes": ["chat"]}),
    ("api-keys/<uuid:key_id>/", "patch"): ("api-keys/{key}/", {"name": "new"}),
    ("api-keys/<uuid:key_id>/", "delete"): ("api-keys/{key}/", None),
    ("api-keys/<uuid:key_id>/rotate/", "post"): ("api-keys/{key}/rotate/", {}),
}
NEEDS_NO_ROW = {  # one object that a list has told of, read to be changed; no content
    ("members/<uuid:member_id>/", "get"),
    ("invitations/<uuid:invitation_id>/", "get"),
    ("api-keys/<uuid:key_id>/", "get"),
    ("api-keys/<uuid:key_id>/requests/", "get"),  # pages ask for it again and again
}


def _places(world: World) -> dict[str, object]:
    invitation = invitation_create(actor=world.olivia.actor, email="new@acme.example", role=RoleName.VIEWER)
    return {"member": world.bob.member.id, "key": world.alice.key.id, "invitation": invitation.view.id}


def _drop_audit_log(superuser: Superuser) -> None:
    superuser().execute("REVOKE INSERT ON governance_auditentry FROM memos_app")


def test_every_route_is_listed() -> None:
    """Those of webhooks are in test_audited_or_refused.py."""
    routes = {
        (str(route.pattern), method)
        for route in routes_of_the_law
        if isinstance(route, URLPattern) and not str(route.pattern).startswith(("webhooks/", "deliveries/"))
        for method in METHODS
        if hasattr(route.callback.view_class, method)  # type: ignore[attr-defined]
    }
    assert routes == set(CALLS) | NEEDS_NO_ROW


def test_without_the_audit_log_nothing_changes_and_nothing_is_reported(world: World, superuser: Superuser) -> None:
    places = _places(world)
    _drop_audit_log(superuser)
    before = read_all_rows(superuser())
    for (_, method), (address, body) in CALLS.items():
        reply = world.client("olivia").send(method.upper(), address.format(**places), body)
        assert (reply.status, reply.code) == (503, "audit_unavailable"), (method, address)
        assert read_all_rows(superuser()) == before, (method, address)


@pytest.mark.parametrize("password", ["right", "wrong"])
def test_without_the_audit_log_nobody_signs_in(world: World, superuser: Superuser, password: str) -> None:
    give_password(world.alice)
    _drop_audit_log(superuser)
    client = browser()
    body = {"email": world.alice.email, "password": "a heron by the mill" if password == "right" else "wrong"}
    assert client.post("/sign-in/", body).status_code == 503
    assert not is_in(client)
    assert superuser().execute("SELECT count(*) FROM governance_browsersession").fetchone() == (0,)


def test_without_the_audit_log_links_and_codes_let_nobody_in(world: World, superuser: Superuser) -> None:
    link = link_for(world.bob)
    invitation_create(actor=world.olivia.actor, email="vera@acme.example", role=RoleName.VIEWER)
    drain()
    invitation = find_mailed_link()
    give_password(world.alice)
    _, codes = set_up_factor(sign_in(world.alice.email))
    waiting = sign_in(world.alice.email)
    _drop_audit_log(superuser)
    assert browser().post(link).status_code == 503
    assert browser().post(invitation, {"new": "a heron by the mill"}).status_code == 503
    assert waiting.post("/sign-in/~/code/", {"code": codes[0]}).status_code == 503
    assert not is_in(waiting)


def test_without_the_audit_log_an_account_does_not_change(world: World, superuser: Superuser) -> None:
    client = signed_in(world.alice)
    _drop_audit_log(superuser)
    before = read_all_rows(superuser())
    assert client.post("/account/password/", {"new": "a heron by the mill"}).status_code == 503
    assert client.post("/account/sessions/end-others/").status_code == 503
    assert client.post("/sign-out/").status_code == 503
    assert client.get("/account/").status_code == 503
    assert read_all_rows(superuser()) == before
