"""Sign-in, forms, links and cookies at a public address that a proxy serves.

Sources: wger 1206 (HTTPS in front of plain HTTP), healthchecks 273 (a sub-path), hermes-webui 368 and linkding 1081
(another port, and `Host` without it), OctoPrint 1479 (two installations on one host).
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest
from django.test import override_settings
from django.urls import set_script_prefix
from starlette.types import ASGIApp, Receive, Scope, Send

from governance.errors import Unavailable
from memos_web.address import address_settings
from memos_web.config import ConfigError, read_config
from memos_web.handler import ThreadedHandler
from memos_web.proxy import AtAddress, refuse_page_path
from tests.factories import World
from tests.governance.web.visitors import link_for
from tests.harness.cases import each_case

Act = Callable[[httpx2.AsyncClient], Awaitable[Any]]
TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')
OWN_LINKS = re.compile(r'(?:href|src|action|hx-get|hx-post|data-path)="(/[^"]*)"')


class Proxy:
    """Ends TLS, as `proxy_pass` of nginx does; strips: the path of its location; host: the header that it sets."""

    def __init__(self, app: ASGIApp, *, strips: str, host: str) -> None:
        self._app, self._strips, self._host = app, strips, host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [item for item in scope["headers"] if item[0] != b"host"] + [(b"host", self._host.encode())]
        path = scope["path"].removeprefix(self._strips)
        await self._app({**scope, "scheme": "http", "headers": headers, "path": path}, receive, send)


def visit(url: str, act: Act, *, strips: str = "", host: str = "memos.example", **changes: object) -> Any:
    """Run `act` with a browser at `url`, behind a proxy."""
    site = {"PUBLIC_URL": url, "PUBLIC_URL_IS_GIVEN": True, "ALLOWED_HOSTS": ["memos.example", "127.0.0.1"]}

    async def run() -> Any:
        app = Proxy(AtAddress(ThreadedHandler()), strips=strips, host=host)
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url=f"{url}/", trust_env=False) as browser:
            return await act(browser)

    with override_settings(**{**site, **address_settings(url, "secret"), **changes}):
        try:
            return asyncio.run(run())
        finally:
            set_script_prefix("/")


def form_of(page: httpx2.Response, **fields: str) -> dict[str, Any]:
    """Return what a browser sends with the first form of the page."""
    found = TOKEN.search(page.text)
    assert found is not None, page.text
    address = str(page.url)
    origin = "/".join(address.split("/")[:3])
    return {
        "data": {"csrfmiddlewaretoken": found[1], **fields},
        "headers": {"Origin": origin, "Referer": address},
    }


async def sign_in(browser: httpx2.AsyncClient, link: str) -> httpx2.Response:
    page = await browser.get(link)
    assert page.status_code == 200, page.text
    return await browser.post(link, **form_of(page))


@each_case(
    ("url", "strips", "host"),
    [
        ("https://memos.example", "", "memos.example"),
        ("https://memos.example:8443", "", "memos.example:8443"),
        ("https://memos.example:8443", "", "memos.example"),  # nginx: proxy_set_header Host $host
        ("https://memos.example", "", "127.0.0.1:8000"),  # nginx without proxy_set_header
        ("https://memos.example/memos", "", "memos.example"),  # proxy_pass http://127.0.0.1:8000;
        ("https://memos.example/memos", "/memos", "memos.example"),  # proxy_pass http://127.0.0.1:8000/;
        ("http://memos.example/a/memos", "/a/memos", "memos.example"),
    ],
)
def test_sign_in_and_forms_work_at_the_public_address(world: World, url: str, strips: str, host: str) -> None:
    link = link_for(world.alice).removeprefix("/")
    prefix = "/" + url.partition("://")[2].partition("/")[2]

    async def act(browser: httpx2.AsyncClient) -> None:
        signed_in = await sign_in(browser, link)
        assert signed_in.status_code == 303, signed_in.text
        assert signed_in.headers["location"] == f"{prefix.rstrip('/')}/overview/"
        page = await browser.get("overview/")
        assert page.status_code == 200
        links = OWN_LINKS.findall(page.text)
        assert len(links) > 20
        assert [found for found in links if not found.startswith(prefix)] == []
        style = await browser.get("static/css/base.css")
        assert (style.status_code, style.headers["content-type"].partition(";")[0]) == (200, "text/css")
        for cookie in browser.cookies.jar:
            assert (cookie.path.startswith(prefix), cookie.secure) == (True, url.startswith("https"))
        out = await browser.post("sign-out/", **form_of(page))
        assert (out.status_code, out.headers["location"]) == (303, f"{prefix.rstrip('/')}/sign-in/")

    visit(url, act, strips=strips, host=host)


def test_links_of_the_api_and_its_document_name_the_public_address(world: World) -> None:
    headers = {"Authorization": f"Bearer {world.alice.key.text}"}

    async def act(browser: httpx2.AsyncClient) -> tuple[Any, Any, str]:
        for text in ("The heron nests on the north island.", "The ferry leaves at eight."):
            added = await browser.post("api/v1/memories/", json={"content": text}, headers=headers)
            assert added.status_code == 201, added.text
        listed = await browser.get("api/v1/memories/?page_size=1", headers=headers)
        document = await browser.get("api/schema/?format=json")
        unknown = await browser.get("api/v1/nothing/", headers=headers)
        return listed.json()["next"], document.json()["servers"], unknown.headers["content-type"]

    following, servers, kind = visit("https://memos.example:8443/memos", act, strips="/memos")
    assert following.startswith("https://memos.example:8443/memos/api/v1/memories/?")
    assert servers == [{"url": "/memos"}]
    assert kind == "application/problem+json"


def test_form_at_an_address_without_https_says_where_it_works(world: World) -> None:
    """Its cookies are for HTTPS alone."""
    link = link_for(world.alice).removeprefix("/")

    async def act(browser: httpx2.AsyncClient) -> str:
        page = await browser.get(link)
        refused = await browser.post(link, data=form_of(page)["data"], headers={"Origin": "http://192.0.2.7:8000"})
        assert refused.status_code == 403
        return refused.text

    text = visit("https://memos.example", act, host="127.0.0.1:8000")
    assert "Forms do not work at this address." in text
    assert "https://memos.example" in text


def test_two_installations_on_one_host_use_other_cookies() -> None:
    """A browser sends the cookies of a host to all its ports: OctoPrint 1479."""
    first, second = (address_settings("http://127.0.0.1:8000", secret) for secret in ("first", "second"))
    for name in ("SESSION_COOKIE_NAME", "CSRF_COOKIE_NAME", "INSTALLATION_TAG"):
        assert first[name] != second[name]
    assert first == address_settings("http://127.0.0.1:8000", "first")


@each_case(
    "url",
    [
        "memos.example",
        "ftp://memos.example",
        "https://",
        "https://me:secret@memos.example",
        "https://memos.example?x=1",
        "https://memos.example/#top",
        "https://memos.example/a b",
        "https://memos.example/../memos",
        "https://memos.example:port",
    ],
)
def test_address_that_cannot_work_is_refused_by_name(url: str) -> None:
    with pytest.raises(ConfigError, match="MEMOS_PUBLIC_URL"):
        read_config({"MEMOS_PUBLIC_URL": url})


@each_case("path", ["/chat", "/mcp", "/api", "/static"])
def test_path_that_is_a_page_of_the_product_is_refused(path: str) -> None:
    with override_settings(PUBLIC_URL=f"https://memos.example{path}"), pytest.raises(Unavailable) as refused:
        refuse_page_path()
    assert path in str(refused.value)


def test_usual_addresses_are_taken() -> None:
    for path in ("", "/memos", "/tools/chat"):
        with override_settings(PUBLIC_URL=f"https://memos.example{path}"):
            refuse_page_path()
