"""Hosts that only speak OAuth: the SDK's own client finds the way, its person consents, and a key is made."""

import asyncio
import base64
import hashlib
import re
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

import httpx2
import pytest
from django.test import Client as Browser
from django.test import override_settings
from django.urls import set_script_prefix
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from governance.vocabulary import Scope
from memos_web.address import address_settings
from memos_web.handler import ThreadedHandler
from memos_web.mcp.app import WithMcp
from memos_web.proxy import AtAddress
from tests.address.test_public_address import form_of
from tests.factories import World, key_for
from tests.governance.web.visitors import link_for, signed_in
from tests.harness.cases import each_case
from tests.mcp.agent import Agent, running
from tests.vault.api.contract import contract

T = TypeVar("T")
CALLBACK = "http://127.0.0.1:33418/callback"
REQUEST = re.compile(r'name="request" value="([^"]+)"')
VERIFIER = "v" * 64
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")


@dataclass
class Site:
    """One server in this process, and browsers and hosts of it. url: its public address."""

    url: str
    app: Any

    def browser(self, **options: Any) -> httpx2.AsyncClient:
        transport = httpx2.ASGITransport(app=self.app, client=("192.0.2.7", 40000))
        return httpx2.AsyncClient(transport=transport, base_url=f"{self.url}/", trust_env=False, timeout=30, **options)


@dataclass
class Memory:
    """The storage of a host."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@dataclass
class Host:
    """An application of the person with a sign-in `link`. scopes: those that the person leaves ticked."""

    site: Site
    link: str
    scopes: tuple[str, ...] = ("memories:read", "memories:write")
    storage: Memory = field(default_factory=Memory)
    answer: AuthorizationCodeResult | None = None

    async def redirect(self, url: str) -> None:
        async with self.site.browser() as browser:
            location = await consent(browser, url, self.link, scopes=self.scopes)
        found = {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}
        self.answer = AuthorizationCodeResult(code=found["code"], state=found["state"])

    async def callback(self) -> AuthorizationCodeResult:
        assert self.answer is not None
        return self.answer

    async def run(self, act: Callable[[Agent], Awaitable[T]]) -> T:
        metadata = OAuthClientMetadata(client_name="An editor", redirect_uris=[CALLBACK])  # type: ignore[list-item]
        auth = OAuthClientProvider(f"{self.site.url}/mcp/", metadata, self.storage, self.redirect, self.callback)
        async with (
            self.site.browser(auth=auth) as http,
            Client(streamable_http_client(f"{self.site.url}/mcp/", http_client=http)) as client,
        ):
            return await act(Agent(client))


async def consent(
    browser: httpx2.AsyncClient, url: str, link: str, *, scopes: tuple[str, ...], answer: str = "yes"
) -> str:
    """Sign in, and answer the request; return where the browser is sent then."""
    asked = await browser.get(url)
    assert asked.status_code == 302, asked.text
    sign_in = await follow(browser, await follow(browser, asked))
    assert sign_in.status_code == 200, sign_in.text
    page = await follow(browser, await browser.post(link, **form_of(await browser.get(link))))
    assert page.status_code == 200, page.text
    fields = form_of(page, answer=answer, days="30", request=REQUEST.findall(page.text)[0])
    fields["data"]["scopes"] = list(scopes)
    sent = await browser.post(page.url.copy_with(query=None), **fields)
    assert sent.status_code == 303, sent.text
    location: str = sent.headers["location"]
    return location


async def follow(browser: httpx2.AsyncClient, reply: httpx2.Response) -> httpx2.Response:
    """The page that a redirect leads to."""
    return await browser.get(urljoin(str(reply.url), reply.headers["location"]))


def serve(act: Callable[[Site], Awaitable[T]], url: str = "") -> T:
    """Run `act` with a site at `url`, or at the address that the tests know."""

    async def run() -> T:
        inner = WithMcp(ThreadedHandler())
        async with running(inner):
            return await act(Site(url or "http://testserver", AtAddress(inner)))

    changes: dict[str, Any] = {}
    if url:
        given = {"PUBLIC_URL": url, "PUBLIC_URL_IS_GIVEN": True, "ALLOWED_HOSTS": [urlsplit(url).hostname]}
        changes = {**given, **address_settings(url, "secret")}
    with override_settings(**changes):
        try:
            return asyncio.run(run())
        finally:
            set_script_prefix("/")


async def register(browser: httpx2.AsyncClient, **metadata: Any) -> httpx2.Response:
    sent = {"redirect_uris": [CALLBACK], "client_name": "An editor", "token_endpoint_auth_method": "none"} | metadata
    return await browser.post("oauth/register", json=sent)


def authorize_url(site: Site, registered: str, **changes: str) -> str:
    asked = {
        "response_type": "code",
        "client_id": registered,
        "redirect_uri": CALLBACK,
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "state": "of-the-host",
        **changes,
    }
    return f"{site.url}/oauth/authorize?{urlencode(asked)}"


async def exchange(browser: httpx2.AsyncClient, client_id: str, code: str, **changes: str) -> httpx2.Response:
    sent = {
        "grant_type": "authorization_code",
        "client_id": client_id,
        "code": code,
        "redirect_uri": CALLBACK,
        "code_verifier": VERIFIER,
    }
    return await browser.post("oauth/token", data=sent | changes)


@pytest.mark.parametrize("url", ["", "https://memos.example:8443/memos"])
def test_host_connects_by_oauth_and_uses_the_memory_of_its_person(world: World, url: str) -> None:
    """The whole way of the SDK's client: challenge, metadata, registration, consent, code with PKCE, key."""

    link = link_for(world.alice)

    async def act(site: Site) -> tuple[Host, Any]:
        host = Host(site, link)

        async def use(agent: Agent) -> Any:
            await agent.tool("add_memory", content="The heron nests on the north island.")
            return await agent.tool("search_memories", query="Where does the heron nest?")

        return host, await host.run(use)

    host, found = serve(act, url)
    assert [memory["content"] for memory in found["memories"]] == ["The heron nests on the north island."]
    assert host.storage.tokens is not None
    assert host.storage.tokens.scope == "memories:read memories:write"
    assert host.storage.tokens.expires_in == pytest.approx(30 * 86400, abs=60)
    (key,) = [key for key in contract(world, "olivia").get("api-keys/").json["results"] if key["name"] == "An editor"]
    assert key["member"]["id"] == str(world.alice.member.id)
    entries = contract(world, "olivia").get("audit/?page_size=200").json["results"]
    verbs = {entry["verb"] for entry in entries if key["id"] in entry["object_ids"]}
    assert {"apikey.created", "apikey.rotated"} <= verbs


def test_host_gets_no_more_than_its_person_consented_to(world: World) -> None:
    link = link_for(world.alice)

    async def act(site: Site) -> str:
        async def use(agent: Agent) -> str:
            assert (await agent.tool("search_memories", query="anything"))["memories"] == []
            return await agent.find_refusal("add_memory", content="Not with this key.")

        return await Host(site, link, scopes=("memories:read",)).run(use)

    assert "forbidden" in serve(act)


def test_member_lists_and_revokes_the_key_of_an_application(world: World) -> None:
    link = link_for(world.alice)
    again = link_for(world.alice)

    async def act(site: Site) -> list[int]:
        host = Host(site, link)

        async def use(agent: Agent) -> Any:
            return await agent.tool("search_memories", query="anything")

        await host.run(use)
        assert host.storage.tokens is not None
        headers = {"authorization": f"Bearer {host.storage.tokens.access_token}"}
        async with site.browser() as browser:
            before = await browser.get("api/v1/me/", headers=headers)
            await browser.post(again, **form_of(await browser.get(again)))
            page = await browser.get("account/")
            assert "An editor" in page.text
            revoke = f"account/keys/{before.json()['principal']['id']}/revoke/"
            assert f'action="/{revoke}"' in page.text
            await browser.post(revoke, **form_of(page))
            assert "An editor" not in (await browser.get("account/")).text
            after = await browser.get("api/v1/me/", headers=headers)
        return [before.status_code, after.status_code]

    assert serve(act) == [200, 401]


def test_nobody_revokes_the_key_of_another_member_as_their_own(world: World) -> None:
    key = key_for(world.alice, Scope.MEMORIES_READ)
    for who in (world.bob, world.charlie, world.olivia):
        assert signed_in(who).post(f"/account/keys/{key.id}/revoke/").status_code == 404
    assert contract(world, "olivia").get(f"api-keys/{key.id}/").json["revoked_at"] is None


def test_person_who_cancels_makes_no_key(world: World) -> None:
    link = link_for(world.alice)

    async def act(site: Site) -> str:
        async with site.browser() as browser:
            client_id = (await register(browser)).json()["client_id"]
            return await consent(browser, authorize_url(site, client_id), link, scopes=(), answer="no")

    assert serve(act) == f"{CALLBACK}?error=access_denied&state=of-the-host"
    names = [key["name"] for key in contract(world, "olivia").get("api-keys/").json["results"]]
    assert "An editor" not in names


def test_code_works_once_for_its_client_and_verifier(world: World) -> None:
    """RFC 6749 §4.1.2: the second use revokes what the first one got."""

    link = link_for(world.alice)

    async def act(site: Site) -> list[Any]:
        async with site.browser() as browser:
            client_id, other = [(await register(browser, client_name=name)).json()["client_id"] for name in "ab"]
            address = authorize_url(site, client_id, redirect_uri="http://127.0.0.1:51000/callback")
            location = await consent(browser, address, link, scopes=("memories:read",))
            assert location.startswith("http://127.0.0.1:51000/callback?code=")
            code = parse_qs(urlsplit(location).query)["code"][0]
            same = {"redirect_uri": "http://127.0.0.1:51000/callback"}
            refused = [
                await exchange(browser, client_id, code, **same, code_verifier="w" * 64),
                await exchange(browser, other, code, **same),
                await exchange(browser, client_id, code),
                await exchange(browser, client_id, f"{code}x", **same),
                await exchange(browser, client_id, code, **same, resource="https://other.example/mcp/"),
            ]
            first = await exchange(browser, client_id, code, **same)
            headers = {"authorization": f"Bearer {first.json()['access_token']}"}
            before = await browser.get("api/v1/me/", headers=headers)
            second = await exchange(browser, client_id, code, **same)
            after = await browser.get("api/v1/me/", headers=headers)
            return [
                [reply.json()["error"] for reply in refused],
                [reply.status_code for reply in (first, before, second, after)],
            ]

    codes, statuses = serve(act)
    assert codes[:2] == ["invalid_grant", "invalid_grant"]
    assert set(codes[2:-1]) <= {"invalid_request", "invalid_grant"}
    assert codes[-1] == "invalid_target"
    assert statuses == [200, 200, 400, 401]


@each_case(
    "uri",
    [
        "http://evil.example/callback",
        "javascript:alert(1)",
        "data:text/html,x",
        "https://evil.example/#x",
        "https://app.example/#",
        "http://127.0.0.1.evil.example/",
        "mailto:mallory@evil.example",
        "evilapp://claude.ai/callback",
    ],
)
def test_registration_refuses_addresses_that_a_code_must_not_go_to(world: World, uri: str) -> None:
    async def act(site: Site) -> tuple[int, str]:
        async with site.browser() as browser:
            reply = await register(browser, redirect_uris=[uri])
            return reply.status_code, reply.json()["error"]

    status, error = serve(act)
    assert (status, error) in {(400, "invalid_redirect_uri"), (400, "invalid_client_metadata")}


@each_case(
    ("changes", "error"),
    [
        ({"redirect_uri": "https://evil.example/callback"}, "invalid_request"),
        ({"redirect_uri": f"{CALLBACK}#evil"}, "invalid_request"),
        ({"client_id": "made-up"}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"resource": "https://other.example/mcp/"}, "invalid_target"),
        ({"state": secrets.token_hex(3000)}, "invalid_request"),
    ],
)
def test_authorization_request_that_is_wrong_asks_nobody(world: World, changes: dict[str, str], error: str) -> None:
    async def act(site: Site) -> httpx2.Response:
        async with site.browser() as browser:
            client_id = (await register(browser)).json()["client_id"]
            return await browser.get(authorize_url(site, client_id, **changes))

    reply = serve(act)
    assert (reply.status_code, reply.headers.get("location")) == (400, None)
    assert error in reply.text


@each_case("method", ["client_secret_post", "client_secret_basic"])
def test_confidential_client_needs_its_secret(world: World, method: str) -> None:
    link = link_for(world.alice)

    async def act(site: Site) -> list[int]:
        async with site.browser() as browser:
            made = (await register(browser, token_endpoint_auth_method=method)).json()
            location = await consent(browser, authorize_url(site, made["client_id"]), link, scopes=("memories:read",))
            code = parse_qs(urlsplit(location).query)["code"][0]
            replies = []
            for secret in ("x" * 64, made["client_secret"]):
                if method == "client_secret_basic":
                    browser.auth = httpx2.BasicAuth(made["client_id"], secret)
                    replies.append(await exchange(browser, made["client_id"], code))
                else:
                    replies.append(await exchange(browser, made["client_id"], code, client_secret=secret))
            return [reply.status_code for reply in replies]

    assert serve(act) == [401, 200]


def test_page_of_a_request_names_the_application_and_lets_its_form_redirect_there(world: World) -> None:
    async def act(site: Site) -> tuple[str, str]:
        async with site.browser() as browser:
            made = await register(browser, redirect_uris=["cursor://anysphere.cursor-mcp/oauth"], client_name="<b>Ed")
            address = authorize_url(site, made.json()["client_id"], redirect_uri="cursor://anysphere.cursor-mcp/oauth")
            return (await browser.get(address)).headers["location"], made.json()["client_name"]

    location, name = serve(act)
    page = signed_in(world.alice).get(location.removeprefix("http://testserver"))
    assert (page.status_code, name) == (200, "<b>Ed")
    assert "Connect &lt;b&gt;Ed?" in page.content.decode()
    assert "form-action 'self' cursor:;" in page["Content-Security-Policy"]
    assert page["X-Frame-Options"] == "DENY"
    spoilt = signed_in(world.alice).get(location.removeprefix("http://testserver") + "x")
    assert spoilt.status_code == 404


def begin_connection(browser: Browser) -> str:
    """Register an application and open the page that asks to connect it; the token of the request."""

    async def act(site: Site) -> str:
        async with site.browser() as application:
            client_id = (await register(application)).json()["client_id"]
            location: str = (await application.get(authorize_url(site, client_id))).headers["location"]
            return location

    path = serve(act).removeprefix("http://testserver")
    return str(REQUEST.findall(browser.get(path).content.decode())[0])


def test_connection_without_scopes_is_refused_at_the_field(world: World) -> None:
    browser = signed_in(world.alice)
    token = begin_connection(browser)
    refused = browser.post("/connect/", {"request": token, "answer": "yes", "days": "30"})
    assert refused.status_code == 422
    assert 'id="id_scopes_error">Choose at least one.' in refused.content.decode()
    forged = {"request": token, "answer": "yes", "scopes": ["memories:read", "admin"], "days": "30"}
    assert browser.post("/connect/", forged).status_code == 422, "a scope that was not offered"


def test_auditor_who_may_not_read_memory_connects_nothing(world: World) -> None:
    browser = signed_in(world.ada)
    token = begin_connection(browser)
    refused = browser.post("/connect/", {"request": token, "answer": "yes", "scopes": ["memories:read"], "days": "30"})
    assert refused.status_code == 403
