"""A withdrawn pack leaves its subscriber within a minute: two organisations, a real server and a real worker."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.harness.evidence import Evidence
from tests.harness.product import RunningServer, installation, wait_until
from tests.harness.servers import Servers
from tests.journeys.live import Live

pytestmark = pytest.mark.long
GOAL_SECONDS = 60.0
TEXT = "The heron nests by the mill."


@pytest.fixture(scope="module")
def server(servers: Servers) -> Iterator[RunningServer]:
    with installation(servers.cluster) as server:
        server.start()
        yield server


@pytest.fixture(scope="module")
def publisher(server: RunningServer) -> Live:
    return organisation(server, "publisher")


@pytest.fixture(scope="module")
def subscriber(server: RunningServer) -> Live:
    return organisation(server, "subscriber")


def organisation(server: RunningServer, slug: str) -> Live:
    email = f"owner@{slug}.example"
    command(server, "tenant_create", slug, "--owner", email)
    key = command(server, "apikey_create", "--tenant", slug, "--member", email)["api_key"]
    return Live(server.base_url, key)


def command(server: RunningServer, *words: str) -> Any:
    done = server.manage(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def subscribed(server: RunningServer, publisher: Live, subscriber: Live, name: str) -> str:
    """A pack of the publisher that the subscriber has installed; the address of the pack."""
    memory = publisher.done("POST", "memories/", {"content": f"{TEXT} {name}"})["results"][0]["id"]
    pack = f"packs/{publisher.done('POST', 'packs/', {'name': name, 'title': name})['id']}/"
    publisher.done("POST", f"{pack}versions/", {"version": "1.0.0", "ids": [memory]})
    version = f"{pack}versions/1.0.0/"
    wait_until(lambda: publisher.done("GET", version)["state"] == "ready", seconds=30, why=server.report)
    body = {"pack_version": publisher.done("GET", version)["id"], "visibility": "installation"}
    publication = publisher.done("POST", "publications/", body)["id"]
    asked = subscriber.done("POST", "subscriptions/", {"publication": publication})["subscription"]["id"]
    mine = f"subscriptions/{asked}/"
    wait_until(lambda: subscriber.done("GET", mine)["version"] == "1.0.0", seconds=30, why=server.report)
    assert installed(subscriber, name)
    return pack


def installed(subscriber: Live, name: str) -> list[str]:
    return subscriber.contents(f"namespace=/packs/publisher/{name}")


@pytest.mark.parametrize("how", ["yank", "revoke", "ban"])
def test_withdrawn_pack_leaves_its_subscriber_within_a_minute(
    how: str, server: RunningServer, publisher: Live, subscriber: Live, evidence: Evidence
) -> None:
    pack = subscribed(server, publisher, subscriber, how)
    started = time.monotonic()
    if how == "yank":
        publisher.done("POST", f"{pack}versions/1.0.0/yank/", {"reason": "Wrong."})
    elif how == "revoke":
        (agreed,) = [one for one in publisher.done("GET", "contracts/")["results"] if one["name"].endswith(how)]
        publisher.done("POST", f"contracts/{agreed['id']}/revoke/", {"reason": "Not paid."})
    else:
        command(server, "pack_moderate", f"publisher/{how}", how, "--reason", "Against the rules.")
    wait_until(lambda: not installed(subscriber, how), seconds=GOAL_SECONDS, why=server.report)
    evidence(row=18, name=f"pack-{how}", figures={"seconds": round(time.monotonic() - started, 1)})
