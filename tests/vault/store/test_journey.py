"""A pack travels from one tenant to another over REST: scanned, approved, tried, read, upgraded, exhausted, revoked."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from governance.database import acting
from governance.models import AuditEntry
from governance.vocabulary import RoleName
from tests.factories import Person, World, person_add
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs

Superuser = Callable[[], psycopg.Connection]
BURN = "Cool a burn under running water for twenty minutes."
CUT = "Press a clean cloth on a bleeding cut, and hold it up."
STING = "Scrape out the sting of a bee sideways, then cool the skin."
SECRET = "The cabinet opens with the key AKIAIOSFODNN7EXAMPLE."
PLACE = "/packs/acme/first-aid"


@pytest.fixture
def adam(world: World) -> Contract:
    """Another admin of acme, who approves."""
    return Contract(key=person_add(world.acme, "adam@acme.example", RoleName.ADMIN).key.text)


def verbs(person: Person, kind: str) -> list[tuple[str, str]]:
    """(verb, version) of the entries about agreements, oldest first, without those of readings."""
    with acting(person.actor):
        rows = (
            AuditEntry.objects.filter(object_type=kind).exclude(verb__endswith="read").exclude(verb__endswith="listed")
        )
        return [
            (row.verb.rpartition(".")[2], row.detail.get("version", "")) for row in rows.order_by("created_at", "id")
        ]


def build_version(client: Contract, pack: str, version: str, ids: list[str]) -> dict[str, Any]:
    assert client.post(f"packs/{pack}/versions/", {"version": version, "ids": ids}).status == 202
    run_jobs()
    found: dict[str, Any] = client.get(f"packs/{pack}/versions/{version}/").json
    return found


@dataclass
class Offered:
    """A pack of acme that the installation may find. body: of the call that published it."""

    pack: str
    burn: str
    body: dict[str, Any]
    publication: str


def offered_after_a_scan(olivia: Contract, adam: Contract, charlie: Contract) -> Offered:
    """The scan stops a secret; without it the version is ready, and another member approves."""
    pack = olivia.post("packs/", {"name": "first-aid", "title": "First aid", "topic": "health"}).json["id"]
    burn, cut, secret = (olivia.add(text, namespace="/aid")["id"] for text in (BURN, CUT, SECRET))
    blocked = build_version(olivia, pack, "1.0.0", [burn, cut, secret])
    assert (blocked["state"], [memory["memory_id"] for memory in blocked["report"]["blocked"]]) == ("blocked", [secret])
    ready = build_version(olivia, pack, "1.0.0", [burn, cut])
    assert ready["state"] == "ready"
    terms = {"reads": 5, "period": "month", "price": "EUR 5 a month"}
    body = {"pack_version": ready["id"], "visibility": "installation", "terms": terms}
    publication = olivia.post("publications/", body).json["id"]
    assert charlie.get("publications/").json["results"] == []
    assert adam.post(f"publications/{publication}/approve/").status == 200
    return Offered(pack, burn, body, publication)


def upgrade_pack(olivia: Contract, adam: Contract, charlie: Contract, offer: Offered, mine: str) -> None:
    """Its changes are stated before, which is the second read."""
    sting = olivia.add(STING, namespace="/aid")["id"]
    newer = build_version(olivia, offer.pack, "1.1.0", [offer.burn, sting])
    olivia.post("publications/", {**offer.body, "pack_version": newer["id"]})
    assert adam.post(f"publications/{offer.publication}/approve/").status == 200
    run_jobs()
    assert charlie.get(mine).json["available"] == "1.1.0"
    plan = charlie.post(f"{mine}upgrade/?dry_run=true", {"version": "1.1.0"}).json
    assert {change["change"]: change["before"] or change["after"] for change in plan["changes"]} == {
        "added": STING,
        "removed": CUT,
    }
    assert charlie.post(f"{mine}upgrade/", {"version": "1.1.0"}).status == 202
    run_jobs()


def exhaust_reads(charlie: Contract) -> None:
    """The three reads that are left, and then none."""
    assert charlie.search_contents("aid", namespaces=[PLACE]) == sorted([BURN, STING])
    memory = charlie.search("bee", namespaces=[PLACE])[0]["id"]
    assert charlie.get(f"memories/{memory}/").status == 200
    refused = charlie.get(f"memories/{memory}/")
    assert (refused.status, refused.json["code"]) == (429, "quota_exhausted")
    search = charlie.post("memories/search/", {"query": "bee", "namespaces": [PLACE]}).json
    assert (search["results"], len(search["notices"])) == ([], 1)
    run_jobs()


def test_pack_travels_from_publisher_to_subscriber_and_back_to_nothing(
    world: World, olivia: Contract, adam: Contract, charlie: Contract, superuser: Superuser
) -> None:
    offer = offered_after_a_scan(olivia, adam, charlie)

    # Found, tried with one's own last question, subscribed.
    (listed,) = charlie.get("publications/?q=first+aid").json["results"]
    conversation = charlie.post("conversations/", {}).json["id"]
    question, turns = "What do I do with a burn?", f"conversations/{conversation}/turns/"
    assert charlie.post(turns, {"content": question}).json["citations"] == []
    (tried,) = charlie.post(f"publications/{listed['id']}/try/", {}).json["results"]
    assert (tried["query"], tried["without"]) == (question, [])
    assert (tried["with_pack"][0]["text"], tried["with_pack"][0]["of_pack"]) == (BURN, True)
    asked = charlie.post("subscriptions/", {"publication": listed["id"]}).json["subscription"]["id"]
    run_jobs()
    mine = f"subscriptions/{asked}/"
    assert charlie.post("mounts/", {"namespace": PLACE, "conversation": conversation}).status == 201

    # Asked in the chat: the answer cites the pack. That is the first read.
    answer = charlie.post(turns, {"content": question}).json
    assert BURN in answer["content"]
    assert {citation["pack"] for citation in answer["citations"]} == {"acme/first-aid"}
    assert charlie.get(mine).json["reads_left"] == 4

    upgrade_pack(olivia, adam, charlie, offer, mine)
    exhaust_reads(charlie)

    # Both sides have the same reads.
    (agreed,) = olivia.get("contracts/").json["results"]
    theirs = olivia.get(f"contracts/{agreed['id']}/invocations/").json["results"]
    ours = charlie.get(f"{mine}invocations/").json["results"]
    assert sorted(our["number"] for our in ours) == [1, 2, 3, 4, 5]
    assert sorted(theirs, key=lambda row: row["number"]) == sorted(ours, key=lambda row: row["number"])

    # Revoked: nothing is left, and both audit logs agree.
    assert olivia.post(f"contracts/{agreed['id']}/revoke/", {"reason": "Not paid."}).status == 200
    run_jobs()
    assert charlie.get(mine).json["state"] == "revoked"
    for table, condition in (("vault_cube", "source = 'pack'"), ("vault_packmemory", "true"), ("vault_mount", "true")):
        assert superuser().execute(f"SELECT id FROM {table} WHERE {condition}".encode()).fetchall() == []
    assert verbs(world.olivia, "contract") == [("created", "1.0.0"), ("changed", "1.1.0"), ("revoked", "")]
    here = verbs(world.charlie, "subscription")
    assert [version for verb, version in here if verb == "changed" and version] == ["1.0.0", "1.1.0"]
    assert ("revoked", "") in here
