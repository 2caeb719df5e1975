"""Two installations, each with its own database and keys, keep a namespace in step, also when one of them is killed."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest

from tests.faults.kills import END_OF_LEASES
from tests.harness.processes import descendants, is_alive
from tests.harness.product import RunningServer, installation, wait_until
from tests.harness.servers import Servers
from tests.journeys.live import Live, NoAnswer, superuser
from vault.exchange.sync.wire import MOST_AT_ONCE

pytestmark = pytest.mark.full
OURS, THEIRS = 250, 350  # more than two steps of either direction
STEPS = 90.0  # seconds that a sync of all of them may take
SECRETS = ("keys/master.key", "keys/django.key", "first-run.json")


@dataclass(frozen=True)
class Pair:
    """The installation that has the peer, and the one that answers it."""

    desk: RunningServer
    home: RunningServer


@dataclass(frozen=True)
class Sync:
    """A namespace of both, with the peer at the desk."""

    pair: Pair
    here: str
    there: str
    peer: str

    @property
    def desk(self) -> Live:
        return Live.of(self.pair.desk)

    @property
    def home(self) -> Live:
        return Live.of(self.pair.home)

    def start(self) -> str:
        """The job of a sync that begins."""
        return str(self.desk.done("POST", f"sync/peers/{self.peer}/run/")["job"]["id"])

    def job(self, job: str) -> dict[str, Any]:
        """A job's state; one that an installation which is down does not tell has none."""
        try:
            status, found = self.desk.call("GET", f"jobs/{job}/")
        except NoAnswer:
            return {"status": "unknown", "done": 0}
        return found if status == 200 else {"status": "unknown", "done": 0}

    def counts(self, job: str) -> dict[str, Any]:
        """The counts of a sync that ends well, without those that are zero."""
        over = {"succeeded", "failed", "cancelled"}
        wait_until(lambda: self.job(job)["status"] in over, seconds=STEPS, why=self.pair.desk.report)
        found = self.job(job)
        assert found["status"] == "succeeded", found
        return {name: count for name, count in found["result"]["counts"].items() if count}

    def run(self) -> dict[str, Any]:
        return self.counts(self.start())

    def contents(self) -> tuple[list[str], list[str]]:
        """The contents of the namespace at the desk, and of the one at home."""
        here = self.desk.contents(f"namespace={self.here}")
        return sorted(here), sorted(self.home.contents(f"namespace={self.there}"))


@pytest.fixture(scope="module")
def pair(servers: Servers) -> Iterator[Pair]:
    with ExitStack() as stack:
        started = [
            stack.enter_context(installation(servers.cluster, MEMOS_ALLOW_PRIVATE_ADDRESSES="yes")) for _ in range(2)
        ]
        for server in started:
            server.start()
        yield Pair(*started)


@pytest.fixture
def sync(pair: Pair) -> Sync:
    """Set up as docs/exchange.md tells: a key of the other installation, then a peer."""
    place = uuid4().hex
    here, there = f"/desk/{place}", f"/home/{place}"
    scopes = ["memories:read", "memories:write"]
    asked = {"name": "The desk", "scopes": scopes, "namespaces": [there]}
    key = Live.of(pair.home).done("POST", "api-keys/", asked)["api_key"]
    peer = Live.of(pair.desk).done(
        "POST",
        "sync/peers/",
        {"name": place, "address": pair.home.base_url, "key": key, "namespace": here, "remote_namespace": there},
    )
    return Sync(pair, here, there, peer["id"])


def add(live: Live, namespace: str, contents: list[str]) -> None:
    items = [{"content": content, "namespace": namespace} for content in contents]
    live.done("POST", "memories/bulk/", {"items": items})


def edit(live: Live, namespace: str, content: str, to: str) -> None:
    found = live.done("GET", f"memories/?namespace={namespace}&page_size=200")["results"]
    (memory,) = [memory for memory in found if memory["content"] == content]
    live.done("PATCH", f"memories/{memory['id']}/", {"content": to}, if_match=f'"{memory["version"]}"')


def kill_all(server: RunningServer) -> None:
    """Kill -9 of the whole installation, as when its power fails."""
    assert server.process is not None
    programs = [server.pid, *descendants(server.pid)]
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    wait_until(lambda: not any(map(is_alive, programs)), seconds=20, why=server.report)


def end_pauses(server: RunningServer) -> None:
    """A step that failed waits for its next attempt, and one whose worker died for the end of its lease: not here."""
    with superuser(server) as connection:
        connection.execute(END_OF_LEASES)


def test_two_installations_share_no_database_key_or_secret(pair: Pair) -> None:
    for name in SECRETS:
        assert (pair.desk.data_dir / name).read_bytes() != (pair.home.data_dir / name).read_bytes()
    with superuser(pair.desk) as desk, superuser(pair.home) as home:
        tenants = [database.execute("SELECT id FROM governance_tenant").fetchall() for database in (desk, home)]
    assert not set(tenants[0]) & set(tenants[1])
    assert Live(pair.home.base_url, pair.desk.first_run["api_key"]).call("GET", "memories/")[0] == 401


def test_edits_at_both_installations_wait_for_a_decision_that_reaches_both(sync: Sync) -> None:
    add(sync.desk, sync.here, ["The heron nests by the mill."])
    add(sync.home, sync.there, ["The otter sleeps by day."])
    assert sync.run() == {"received": 1, "sent": 1}
    edit(sync.desk, sync.here, "The heron nests by the mill.", "The heron nests by the lake.")
    edit(sync.home, sync.there, "The heron nests by the mill.", "The heron nests by the sea.")
    edit(sync.home, sync.there, "The otter sleeps by day.", "The otter sleeps until noon.")
    assert sync.run() == {"conflicts": 1, "updated_here": 1}
    (review,) = sync.desk.done("GET", "reviews/?kind=sync")["results"]
    assert review["theirs"]["content"] == "The heron nests by the sea."
    sync.desk.done("POST", f"reviews/{review['id']}/accept/", {"content": "The heron nests by lake and sea."})
    assert sync.run() == {"updated_there": 1}
    both = ["The heron nests by lake and sea.", "The otter sleeps until noon."]
    assert sync.contents() == (both, both)
    assert sync.run() == {}


@pytest.mark.parametrize("killed", ["desk", "home"])
@pytest.mark.parametrize("phase", ["pull", "push"])
def test_sync_that_is_cut_off_goes_on_without_loss_or_doubling(sync: Sync, killed: str, phase: str) -> None:
    ours = [f"The desk knows number {number}." for number in range(OURS)]
    theirs = [f"The home knows number {number}." for number in range(THEIRS)]
    add(sync.desk, sync.here, ours)
    add(sync.home, sync.there, theirs)
    begun, whole = {"pull": (100, THEIRS), "push": (THEIRS + 100, THEIRS + OURS)}[phase]
    job = sync.start()
    wait_until(lambda: sync.job(job)["done"] >= begun, seconds=STEPS, why=sync.pair.desk.report)
    victim: RunningServer = getattr(sync.pair, killed)
    kill_all(victim)
    if killed == "home":
        found = sync.job(job)
        assert (found["status"] in {"pending", "running"}, found["done"] < whole) == (True, True), found
    victim.start()
    if killed == "desk":
        assert sync.job(job)["done"] < whole
    end_pauses(sync.pair.desk)
    counts = sync.counts(job)
    # A call whose answer was lost is repeated: the other side has its memories already, and they are not counted anew.
    assert counts["received"] == THEIRS
    assert OURS - MOST_AT_ONCE <= counts["sent"] <= OURS
    assert counts.keys() == {"received", "sent"}
    both = sorted(ours + theirs)
    assert sync.contents() == (both, both)
    assert sync.run() == {}
