"""Upgrades of installed packs: compared before, pulled or pushed, with the subscriber's own wording."""

import pytest

from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from tests.vault.store.pack_factories import TEXTS, build_version, memories_of, pack_of, publish_version, subscribe

PLACE = "/packs/other/herons"
NEWER = "The heron fishes at dusk, too."


class Publisher:
    """charlie's pack of three memories, and how its next versions come to be."""

    def __init__(self, client: Contract) -> None:
        self.client, self.pack = client, pack_of(client)
        self.ids = memories_of(client, *TEXTS)
        self.publication = publish_version(client, build_version(client, self.pack, self.ids))["id"]

    def publish(self, version: str, ids: list[str], **fields: object) -> None:
        publish_version(self.client, build_version(self.client, self.pack, ids, version, **fields))
        run_jobs()

    def reword(self, number: int, content: str) -> None:
        reply = self.client.patch(f"memories/{self.ids[number]}/", {"content": content}, if_match="*")
        assert reply.status == 200, reply

    def yank(self, version: str) -> None:
        assert self.client.post(f"packs/{self.pack}/versions/{version}/yank/", {"reason": "Wrong."}).status == 200
        run_jobs()


@pytest.fixture
def publisher(charlie: Contract) -> Publisher:
    return Publisher(charlie)


def contents(client: Contract) -> list[str]:
    return client.search_contents("heron", namespaces=[PLACE])


def second_version(publisher: Publisher) -> str:
    """1.1.0: one memory added, one changed, one removed."""
    (new,) = memories_of(publisher.client, "The heron wades in the lake.")
    publisher.reword(1, NEWER)
    publisher.publish("1.1.0", [publisher.ids[0], publisher.ids[1], new], changelog="Adds the lake.")
    return "1.1.0"


def test_upgrade_is_compared_before_and_changes_what_it_stated(olivia: Contract, publisher: Publisher) -> None:
    made = subscribe(olivia, publisher.publication)
    version = second_version(publisher)
    address = f"subscriptions/{made['id']}/"
    assert olivia.get(address).json["available"] == version
    before = contents(olivia)
    plan = olivia.post(f"{address}upgrade/?dry_run=true", {"version": version}).json
    assert (plan["before"], plan["after"], plan["changelog"]) == ("1.0.0", version, "Adds the lake.")
    assert (plan["added"], plan["changed"], plan["removed"], plan["overridden"]) == (1, 1, 1, 0)
    stated = {change["change"]: (change["before"], change["after"]) for change in plan["changes"]}
    assert stated == {
        "added": ("", "The heron wades in the lake."),
        "changed": (TEXTS[1], NEWER),
        "removed": (TEXTS[2], ""),
    }
    assert contents(olivia) == before
    assert olivia.post(f"{address}upgrade/", {"version": version}).status == 202
    run_jobs()
    assert contents(olivia) == sorted([TEXTS[0], NEWER, "The heron wades in the lake."])
    present = olivia.get(address).json
    assert (present["version"], present["available"]) == (version, None)
    assert publisher.client.get("contracts/").json["results"][0]["version"] == version


def test_override_survives_an_upgrade_until_it_is_removed(olivia: Contract, publisher: Publisher) -> None:
    made = subscribe(olivia, publisher.publication)
    address = f"subscriptions/{made['id']}/"
    found = {memory["content"]: memory["id"] for memory in olivia.search("heron", namespaces=[PLACE])}
    ours, kept = "The heron fishes at noon here.", "Ours sleeps on two legs."
    assert olivia.send("PUT", f"{address}overrides/{found[TEXTS[1]]}/", {"content": ours}).status == 200
    assert olivia.send("PUT", f"{address}overrides/{found[TEXTS[2]]}/", {"content": kept}).status == 200
    version = second_version(publisher)
    plan = olivia.post(f"{address}upgrade/?dry_run=true", {"version": version}).json
    assert {change["change"] for change in plan["changes"] if change["overridden"]} == {"changed", "removed"}
    assert olivia.post(f"{address}upgrade/", {"version": version}).status == 202
    run_jobs()
    assert contents(olivia) == sorted([TEXTS[0], ours, kept, "The heron wades in the lake."])
    assert olivia.delete(f"{address}overrides/{found[TEXTS[1]]}/").status == 202
    run_jobs()
    assert contents(olivia) == sorted([TEXTS[0], NEWER, kept, "The heron wades in the lake."])
    assert olivia.delete(f"{address}overrides/{found[TEXTS[0]]}/").status == 409


def test_pushed_version_comes_by_itself(olivia: Contract, publisher: Publisher) -> None:
    made = subscribe(olivia, publisher.publication, delivery="push", range="^1.0.0")
    second_version(publisher)
    assert olivia.get(f"subscriptions/{made['id']}/").json["version"] == "1.1.0"
    publisher.publish("2.0.0", publisher.ids[:1])
    present = olivia.get(f"subscriptions/{made['id']}/").json
    assert (present["version"], present["available"]) == ("1.1.0", None)
    changed = olivia.patch(f"subscriptions/{made['id']}/", {"range": "*"}).json
    assert changed["range"] == "*"


def test_pinned_subscription_takes_no_other_version(olivia: Contract, publisher: Publisher) -> None:
    made = subscribe(olivia, publisher.publication, range="1.0.0", delivery="push")
    second_version(publisher)
    assert olivia.get(f"subscriptions/{made['id']}/").json["version"] == "1.0.0"
    assert olivia.post(f"subscriptions/{made['id']}/upgrade/", {"version": "1.1.0"}).status == 409


def test_yanked_version_gives_way_at_every_subscriber(olivia: Contract, publisher: Publisher) -> None:
    made = subscribe(olivia, publisher.publication, delivery="push")
    second_version(publisher)
    publisher.yank("1.1.0")
    assert olivia.get(f"subscriptions/{made['id']}/").json["version"] == "1.0.0"
    assert contents(olivia) == sorted(TEXTS)
    publisher.yank("1.0.0")
    present = olivia.get(f"subscriptions/{made['id']}/").json
    assert (present["state"], present["version"]) == ("active", None)
    assert contents(olivia) == []
