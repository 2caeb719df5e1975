"""`make run` behind a real reverse proxy with TLS, on another port and below a path; and `doctor --url` through it."""

import re
import ssl
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.address.test_public_address import OWN_LINKS, form_of
from tests.harness.product import RunningServer, free_port, installation
from tests.harness.reverse_proxy import Certificate, Manners, certificate_make, reverse_proxy
from tests.harness.servers import Servers

pytestmark = pytest.mark.full

PATH = "/memos"
SIGN_IN_LINK = re.compile(r"https://localhost:\d+/memos/sign-in/\S+/")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return certificate_make(tmp_path_factory.mktemp("tls"), "localhost")


@pytest.fixture(scope="module")
def proxy_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def server(servers: Servers, certificate: Certificate, proxy_port: int) -> Iterator[RunningServer]:
    settings = {
        "MEMOS_PUBLIC_URL": f"https://localhost:{proxy_port}{PATH}",
        "MEMOS_TRUSTED_PROXY": "yes",
        "SSL_CERT_FILE": str(certificate.file),
    }
    with installation(servers.cluster, **settings) as server:
        server.start()
        yield server


def browser(certificate: Path) -> httpx2.Client:
    context = ssl.create_default_context(cafile=str(certificate))
    return httpx2.Client(verify=context, trust_env=False, timeout=30, follow_redirects=True)


def new_link(server: RunningServer) -> str:
    made = server.manage("sign_in_link", "--tenant", "home", "--email", "owner@localhost")
    found = SIGN_IN_LINK.search(made.stdout + made.stderr)
    assert found is not None, made.stdout + made.stderr
    return found[0]


@pytest.mark.parametrize(
    "manners",
    [Manners(PATH), Manners(PATH, strips=True), Manners(PATH, strips=True, host="$host")],
    ids=["passes", "strips", "strips-without-port"],
)
def test_owner_signs_in_and_works_through_the_proxy(
    server: RunningServer, certificate: Certificate, proxy_port: int, manners: Manners
) -> None:
    link = new_link(server)
    with reverse_proxy(proxy_port, server.port, manners, certificate.context), browser(certificate.file) as web:
        page = web.post(link, **form_of(web.get(link)))
        assert (page.status_code, urlsplit(str(page.url)).path) == (200, f"{PATH}/overview/")
        assert all(found.startswith(f"{PATH}/") for found in OWN_LINKS.findall(page.text))
        for address in set(re.findall(r'(?:href|src)="(/[^"]*\.(?:css|js|svg))"', page.text)):
            assert web.get(f"https://localhost:{proxy_port}{address}").status_code == 200, address
        key = {"Authorization": f"Bearer {server.first_run['api_key']}"}
        reply = web.get(f"https://localhost:{proxy_port}{PATH}/api/v1/me/", headers=key)
        assert reply.status_code == 200
        found = server.manage("doctor", "--url", f"https://localhost:{proxy_port}{PATH}")
        assert "ok    proxy: " in found.stdout, found.stdout


@pytest.mark.parametrize(
    ("manners", "says"),
    [
        (Manners(PATH, host=""), "Host is 127.0.0.1:"),
        (Manners(PATH, lacks=frozenset({"x-forwarded-for"})), "X-Forwarded-For is missing"),
        (Manners(PATH, lacks=frozenset({"authorization"})), "Authorization is missing"),
        (Manners("/elsewhere"), "answers 404"),
        (None, "cannot be reached"),
    ],
    ids=["host", "for", "authorization", "elsewhere", "nothing"],
)
def test_doctor_names_what_the_proxy_does_not_pass_on(
    server: RunningServer, certificate: Certificate, proxy_port: int, manners: Manners | None, says: str
) -> None:
    url = f"https://localhost:{proxy_port}{PATH}"
    if manners is None:
        found = server.manage("doctor", "--url", url)
    else:
        with reverse_proxy(proxy_port, server.port, manners, certificate.context):
            found = server.manage("doctor", "--url", url)
    assert found.returncode == 1
    (line,) = [line for line in found.stdout.splitlines() if line.startswith("FAIL  proxy")]
    assert says in line
