"""Sign-in by a tenant's own OpenID Connect server: it opens that tenant, for those whom it may vouch for."""

import base64
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from django.test import Client, override_settings

from governance.accounts.identities import (
    ProviderDraft,
    provider_remove,
    provider_save,
    rules_get,
    second_factor_require,
)
from governance.database import acting
from governance.errors import Forbidden, Invalid
from governance.members.services import member_remove
from governance.models import Member
from governance.vocabulary import RoleName
from tests.factories import World, actor_of, person_add
from tests.governance.accounts.oidc_server import CLIENT_ID, OTHER_KEY, SECRET, OidcServer, oidc_server
from tests.governance.accounts.people import browser, code_of, find_entries, is_in, set_up_factor
from tests.governance.tables import read_all_rows
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case

Superuser = Callable[[], psycopg.Connection]


@pytest.fixture
def server() -> Iterator[OidcServer]:
    with override_settings(ALLOW_PRIVATE_ADDRESSES=True), oidc_server() as server:
        server.claims = {"sub": "alice-1", "email": "alice@acme.example", "email_verified": True}
        yield server


def _draft(server: OidcServer, **changes: object) -> ProviderDraft:
    draft = ProviderDraft(
        issuer=server.issuer, client_id=CLIENT_ID, domains=("acme.example",), default_role=None, secret=SECRET
    )
    return replace(draft, **changes)  # type: ignore[arg-type]


@pytest.fixture
def provider_server(world: World, server: OidcServer) -> OidcServer:
    """acme's server, set up by its owner."""
    provider_save(actor=world.olivia.actor, draft=_draft(server))
    return server


def come_back(server: OidcServer, client: Client, *, slug: str = "acme") -> Any:
    """The whole journey: to the server, and back with a code."""
    gone = client.get(f"/sign-in/{slug}/go/")
    assert gone.status_code == 302, gone.content
    return client.get(server.authorize(gone["Location"]))


def test_a_member_whom_it_vouches_for_is_in(world: World, provider_server: OidcServer, superuser: Superuser) -> None:
    client = browser()
    assert "Sign in with your organisation" in client.get("/sign-in/acme/").content.decode()
    assert come_back(provider_server, client)["Location"] == "/overview/"
    me = client.get("/api/v1/me/").json()
    assert (me["tenant"]["slug"], me["principal"]["email"]) == ("acme", "alice@acme.example")
    assert find_entries(superuser, "member.signed_in")[-1]["way"] == "oidc"
    assert len(find_entries(superuser, "identity.linked")) == 1


@pytest.mark.parametrize("changes", [None, {"issuer": "https://other.example"}], ids=["removed", "replaced"])
def test_session_by_way_of_a_sign_in_server_ends_with_it(
    world: World, provider_server: OidcServer, server: OidcServer, changes: dict[str, str] | None
) -> None:
    client, by_password = browser(), signed_in(world.olivia)
    come_back(provider_server, client)
    assert client.get("/api/v1/me/").status_code == 200
    if changes is None:
        provider_remove(actor=world.olivia.actor)
    else:
        provider_save(actor=world.olivia.actor, draft=_draft(server, **changes))
    assert client.get("/api/v1/me/").status_code == 401
    assert by_password.get("/api/v1/me/").status_code == 200


def test_it_goes_with_state_nonce_and_pkce_and_to_our_own_address(provider_server: OidcServer) -> None:
    come_back(provider_server, browser())
    asked = provider_server.asked
    assert asked["redirect_uri"] == "http://testserver/sign-in/acme/callback/"
    assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
    assert len(asked["state"]) >= 16
    assert len(asked["nonce"]) >= 32
    assert len(provider_server.token_requests[0]["code_verifier"]) >= 43


def test_linked_person_is_recognised_by_subject_after_a_change_of_address(
    world: World, provider_server: OidcServer
) -> None:
    come_back(provider_server, browser())
    provider_server.claims = {"sub": "alice-1", "email": "alice.new@elsewhere.example", "email_verified": False}
    client = browser()
    come_back(provider_server, client)
    assert client.get("/api/v1/me/").json()["principal"]["email"] == "alice@acme.example"


def _tamper_state(server: OidcServer, client: Client) -> Any:
    gone = client.get("/sign-in/acme/go/")
    return client.get(server.authorize(gone["Location"]).replace("state=", "state=x"))


def _another_browser(server: OidcServer, client: Client) -> Any:
    gone = client.get("/sign-in/acme/go/")
    return browser().get(server.authorize(gone["Location"]))


def _repeat(server: OidcServer, client: Client) -> Any:
    gone = client.get("/sign-in/acme/go/")
    back = server.authorize(gone["Location"])
    client.get(back)
    client.post("/sign-out/")
    return client.get(back)


def _give_up(server: OidcServer, client: Client) -> Any:
    gone = client.get("/sign-in/acme/go/")
    return client.get(server.authorize(gone["Location"]).replace("code=the-code", "error=access_denied"))


def _other_verifier(server: OidcServer, client: Client) -> Any:
    gone = client.get("/sign-in/acme/go/")
    back = server.authorize(gone["Location"])
    server.asked["code_challenge"] = "of another browser"
    return client.get(back)


def _old_token(server: OidcServer, client: Client) -> Any:
    """The id token of an earlier sign-in, told again."""
    come_back(server, browser())
    server.token = {"nonce": server.asked["nonce"]}
    return come_back(server, client)


BROKEN_JOURNEYS: dict[str, Callable[[OidcServer, Client], Any]] = {
    "another state": _tamper_state,
    "another browser": _another_browser,
    "used again": _repeat,
    "another one's id token": _old_token,
    "given up": _give_up,
    "another PKCE verifier": _other_verifier,
    "no journey": lambda server, client: client.get("/sign-in/acme/callback/?code=the-code&state=x"),
}


@each_case("fault", BROKEN_JOURNEYS)
def test_a_journey_that_was_not_begun_here_leads_nowhere(provider_server: OidcServer, fault: str) -> None:
    client = browser()
    assert BROKEN_JOURNEYS[fault](provider_server, client).status_code == 403
    assert not is_in(client)


BAD_TOKENS: dict[str, dict[str, object]] = {
    "another nonce": {"nonce": "x" * 32},
    "no nonce": {"nonce": None},
    "another audience": {"aud": "somebody-else"},
    "another issuer": {"iss": "https://evil.example"},
    "expired": {"exp": 1_000_000_000},
    "another party": {"azp": "somebody-else"},
}


@each_case("fault", BAD_TOKENS)
def test_an_id_token_that_is_not_right_lets_nobody_in(provider_server: OidcServer, fault: str) -> None:
    provider_server.token = BAD_TOKENS[fault]
    client = browser()
    assert come_back(provider_server, client).status_code == 403
    assert not is_in(client)


def test_an_id_token_signed_by_another_key_or_by_none_lets_nobody_in(provider_server: OidcServer) -> None:
    for key, algorithm in ((OTHER_KEY, "RS256"), (SECRET + "x" * 20, "HS256"), ("", "none")):
        provider_server.signs_with, provider_server.algorithm = key, algorithm
        client = browser()
        assert come_back(provider_server, client).status_code == 403
        assert not is_in(client)


def test_a_server_that_calls_itself_otherwise_is_not_believed(provider_server: OidcServer) -> None:
    provider_server.issuer_told = "https://accounts.big.example"
    assert browser().get("/sign-in/acme/go/").status_code == 403


@each_case(
    "claims",
    [
        {"sub": "s", "email": "alice@acme.example", "email_verified": False},
        {"sub": "s", "email": "alice@acme.example"},
        {"sub": "s", "email": "alice@acme.example", "email_verified": "true"},
        {"sub": "s", "email": "alice@elsewhere.example", "email_verified": True},
        {"sub": "s", "email": "alice@evil.example@acme.example", "email_verified": True},
        {"sub": "s", "email": "", "email_verified": True},
        {"sub": "s"},
        {"sub": "s", "email": "nobody@acme.example", "email_verified": True},
        {"sub": "s" * 10_000, "email": "alice@acme.example", "email_verified": True},
        {"sub": "s\x00", "email": "alice@acme.example", "email_verified": True},
        {"sub": "\ud800", "email": "alice@acme.example", "email_verified": True},
        {"sub": "s", "email": "alice\x00@acme.example", "email_verified": True},
        {"sub": "s", "email": ["alice@acme.example"], "email_verified": True},
    ],
)
def test_an_address_that_is_not_verified_or_not_theirs_links_nobody(
    provider_server: OidcServer, superuser: Superuser, claims: dict[str, object]
) -> None:
    provider_server.claims = claims
    client = browser()
    assert come_back(provider_server, client).status_code == 403
    assert not is_in(client)
    assert superuser().execute("SELECT count(*) FROM governance_oidcidentity").fetchone() == (0,)


def test_newcomers_join_where_a_default_role_says_so(world: World, server: OidcServer) -> None:
    provider_save(actor=world.olivia.actor, draft=_draft(server, default_role=RoleName.VIEWER))
    server.claims = {"sub": "vera", "email": "vera@acme.example", "email_verified": True}
    client = browser()
    come_back(server, client)
    me = client.get("/api/v1/me/").json()
    assert (me["principal"]["email"], me["roles"]) == ("vera@acme.example", ["viewer"])


def test_who_was_removed_does_not_come_back_that_way(world: World, server: OidcServer) -> None:
    provider_save(actor=world.olivia.actor, draft=_draft(server, default_role=RoleName.VIEWER))
    assert come_back(server, browser()).status_code == 303
    member_remove(actor=world.olivia.actor, member_id=world.alice.member.id)
    assert come_back(server, browser()).status_code == 403
    server.claims = {**server.claims, "sub": "alice-2"}
    assert come_back(server, browser()).status_code == 403


def test_it_opens_its_own_organisation_and_no_other(world: World, provider_server: OidcServer) -> None:
    """acme's server may say whatever it likes of other tenants' people: it is believed about acme alone."""
    joined = person_add(world.other, world.alice.email, RoleName.OWNER)
    client = browser()
    assert come_back(provider_server, client)["Location"] == "/overview/"
    refused = client.post("/account/organisations/", {"organisation": joined.member.id})
    assert refused.status_code == 403
    assert "Other" not in client.get("/account/organisations/").content.decode()
    provider_server.claims = {"sub": "charlie", "email": "charlie@other.example", "email_verified": True}
    assert come_back(provider_server, browser()).status_code == 403
    assert browser().get("/sign-in/other/go/").status_code == 404


def test_a_journey_to_one_organisation_ends_in_no_other(world: World, provider_server: OidcServer) -> None:
    """Both use one server, and the person belongs to both: the state is of the organisation that sent them."""
    person_add(world.other, world.alice.email, RoleName.VIEWER)
    provider_save(actor=world.charlie.actor, draft=_draft(provider_server))
    client = browser()
    gone = client.get("/sign-in/other/go/")
    back = provider_server.authorize(gone["Location"]).replace("/sign-in/other/", "/sign-in/acme/")
    assert client.get(back).status_code == 403
    assert not is_in(client)


def test_an_admins_server_does_not_speak_for_owners(world: World, server: OidcServer) -> None:
    admin = person_add(world.acme, "adam@acme.example", RoleName.ADMIN)
    provider_save(actor=admin.actor, draft=_draft(server))
    server.claims = {"sub": "olivia", "email": "olivia@acme.example", "email_verified": True}
    assert come_back(server, browser()).status_code == 403
    provider_save(actor=world.olivia.actor, draft=_draft(server))
    assert come_back(server, browser()).status_code == 303


def test_a_second_factor_is_asked_here_too(world: World, provider_server: OidcServer) -> None:
    secret, _ = set_up_factor(signed_in(world.alice))
    client = browser()
    assert come_back(provider_server, client)["Location"] == "/sign-in/~/code/"
    client.post("/sign-in/~/code/", {"code": code_of(secret)})
    assert is_in(client)
    second_factor_require(actor=world.olivia.actor, required=True)
    assert is_in(client)


def test_the_secret_is_sealed_and_never_shown(
    world: World, provider_server: OidcServer, superuser: Superuser, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    come_back(provider_server, browser())
    stored = str(read_all_rows(superuser()))
    for form in (SECRET, SECRET.encode().hex(), base64.b64encode(SECRET.encode()).decode()):
        assert form not in stored
    assert SECRET not in caplog.text
    assert SECRET not in signed_in(world.olivia).get("/settings/sign-in/").content.decode()
    assert SECRET not in repr(rules_get(actor=world.olivia.actor))


@pytest.mark.parametrize("who", ["alice", "bob", "ada"])
def test_only_who_manages_members_registers_one(
    world: World, server: OidcServer, superuser: Superuser, who: str
) -> None:
    before = read_all_rows(superuser())
    actor = world.person(who).actor
    for call in (
        lambda: provider_save(actor=actor, draft=_draft(server)),
        lambda: provider_remove(actor=actor),
        lambda: rules_get(actor=actor),
    ):
        with pytest.raises(Forbidden):
            call()
    assert read_all_rows(superuser()) == before


def test_a_key_registers_none(world: World, server: OidcServer) -> None:
    with pytest.raises(Forbidden):
        provider_save(actor=world.olivia.key_actor(), draft=_draft(server))


@each_case(
    "changes",
    [
        {"issuer": "ftp://x.example"},
        {"issuer": ""},
        {"client_id": ""},
        {"domains": ()},
        {"domains": ("com",)},
        {"default_role": RoleName.OWNER},
        {"default_role": RoleName.ADMIN},
        {"secret": ""},
    ],
)
def test_what_cannot_be_used_is_not_registered(world: World, server: OidcServer, changes: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        provider_save(actor=world.olivia.actor, draft=_draft(server, **changes))


def test_a_server_of_another_name_knows_nobody_of_the_one_before(world: World, provider_server: OidcServer) -> None:
    come_back(provider_server, browser())
    with oidc_server() as second:
        provider_save(actor=world.olivia.actor, draft=_draft(second))
        second.claims = {"sub": "alice-1"}  # the subject of another server
        assert come_back(second, browser()).status_code == 403


def test_it_is_set_up_changed_and_removed_on_its_page(world: World, server: OidcServer, superuser: Superuser) -> None:
    client = signed_in(world.olivia)
    body = {
        "issuer": server.issuer,
        "client_id": CLIENT_ID,
        "secret": SECRET,
        "domains": "acme.example, b.example",
        "default_role": "viewer",
    }
    assert client.post("/settings/sign-in/", {**body, "issuer": "no"}).status_code == 422
    assert client.post("/settings/sign-in/", body).status_code == 303
    page = client.get("/settings/sign-in/").content.decode()
    assert server.issuer in page
    assert "http://testserver/sign-in/acme/callback/" in page
    assert client.post("/settings/sign-in/", {**body, "secret": "", "default_role": ""}).status_code == 303
    assert come_back(server, browser()).status_code == 303  # the secret of before stayed
    assert client.post("/settings/sign-in/remove/").status_code == 303
    assert browser().get("/sign-in/acme/go/").status_code == 404
    assert len(find_entries(superuser, "sign_in_rules.changed")) == 3
    assert signed_in(world.alice).get("/settings/sign-in/").status_code == 403


def test_without_the_operators_leave_no_address_of_the_inside_is_called(world: World, server: OidcServer) -> None:
    provider_save(actor=world.olivia.actor, draft=_draft(server))
    with override_settings(ALLOW_PRIVATE_ADDRESSES=False):
        assert browser().get("/sign-in/acme/go/").status_code == 403
        with pytest.raises(Invalid):
            provider_save(actor=world.olivia.actor, draft=_draft(server))
    assert server.token_requests == []


def test_a_member_of_two_organisations_signs_in_to_the_one_that_was_asked(world: World, server: OidcServer) -> None:
    person_add(world.other, world.alice.email, RoleName.VIEWER)
    provider_save(actor=world.charlie.actor, draft=_draft(server))
    client = browser()
    come_back(server, client, slug="other")
    assert client.get("/api/v1/me/").json()["tenant"]["slug"] == "other"
    with acting(actor_of(world.charlie.member)):
        assert Member.objects.count() == 2
