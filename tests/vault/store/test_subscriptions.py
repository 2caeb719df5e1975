"""Subscriptions: installed, read under a contract, metered on both sides, revoked. charlie publishes for acme."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import connections

from governance.database import acting
from tests.factories import World
from tests.governance.mutants import mutant
from tests.governance.web.visitors import signed_in
from tests.harness.evidence import Evidence
from tests.vault.api.contract import MISSING, Contract, contract
from tests.vault.outbox import run_jobs
from tests.vault.store.pack_factories import (
    TEXTS,
    build_version,
    memories_of,
    offer_pack,
    pack_of,
    publish_version,
    subscribe,
)
from vault.cubes import pack_reads
from vault.models import Cube
from vault.vocabulary import Source

PLACE = "/packs/other/herons"
Superuser = Callable[[], psycopg.Connection]


@pytest.fixture
def publication(charlie: Contract) -> str:
    return offer_pack(charlie, *TEXTS, reads=100, price="EUR 10 a month")


def counts(superuser: Superuser) -> dict[str, int]:
    """Rows that an installed pack has in the subscriber's tenant."""
    queries = {
        "memories": "SELECT count(*) FROM vault_cube WHERE source = 'pack'",
        "versions": "SELECT count(*) FROM vault_cubeversion AS v JOIN vault_cube AS c ON c.id = v.cube_id "
        "WHERE c.source = 'pack'",
        "origins": "SELECT count(*) FROM vault_packmemory",
        "mounts": "SELECT count(*) FROM vault_mount",
    }
    with superuser() as database:
        return {name: database.execute(query.encode()).fetchone()[0] for name, query in queries.items()}  # type: ignore[index]


def test_subscription_installs_a_read_only_namespace(olivia: Contract, publication: str) -> None:
    made = subscribe(olivia, publication)
    assert (made["state"], made["version"], made["namespace"]["path"]) == ("active", "1.0.0", PLACE)
    assert (made["quota"], made["reads_left"], made["price"]) == (
        {"reads": 100, "period": "month"},
        100,
        "EUR 10 a month",
    )
    found = olivia.search("Where does the heron nest?", namespaces=[PLACE])
    assert {(row["pack"], row["source"], row["trust"]) for row in found} == {("other/herons", "pack", 0.4)}
    assert found[0]["content"] == TEXTS[0]
    memory = f"memories/{found[0]['id']}/"
    assert olivia.patch(memory, {"title": "Mine"}, if_match='"1"').status == 403
    assert olivia.delete(memory).status == 403
    assert olivia.post(f"{memory}copy/", {"namespace": "/mine"}).status == 409
    space = f"namespaces/{made['namespace']['id']}/"
    assert olivia.patch(space, {"read_only": False}).status == 409
    assert olivia.post("memories/", {"content": "x", "namespace": PLACE}).status == 403


def test_search_finds_a_pack_where_it_is_mounted(olivia: Contract, publication: str) -> None:
    subscribe(olivia, publication)
    own = olivia.add("The heron of our pond nests in the willow.")["id"]
    asked = "Where does the heron nest?"
    assert [memory["id"] for memory in olivia.search(asked)] == [own]
    conversation = olivia.post("conversations/", {}).json["id"]
    assert olivia.post("mounts/", {"namespace": PLACE, "task_id": "birds"}).status == 201
    assert olivia.post("mounts/", {"namespace": PLACE, "conversation": conversation}).status == 201
    found = olivia.search(asked, task_id="birds")
    assert {row["pack"] for row in found} == {"other/herons"}
    answer = olivia.post(f"conversations/{conversation}/turns/", {"content": "When does the heron fish?"}).json
    cited = {citation.get("pack") for citation in answer["citations"]}
    assert "other/herons" in cited
    stored = olivia.get(f"conversations/{conversation}/turns/").json["results"][0]
    assert {citation.get("pack") for citation in stored["citations"]} == cited


def test_persona_of_a_subscription_has_the_pack_mounted(olivia: Contract, publication: str) -> None:
    persona = olivia.post("personas/", {"name": "Ranger", "kind": "agent"}).json["id"]
    subscribe(olivia, publication, persona=persona)
    assert TEXTS[0] in olivia.search_contents("Where does the heron nest?", personas=[persona])


def test_two_hundred_reads_at_once_on_a_quota_of_a_hundred_give_exactly_a_hundred(
    olivia: Contract, charlie: Contract, publication: str, evidence: Evidence
) -> None:
    made = subscribe(olivia, publication)
    memory = olivia.search("heron", namespaces=[PLACE], top_k=1)[0]["id"]  # the first read

    def read(number: int) -> str:
        try:
            if number % 2:
                reply = olivia.post("memories/search/", {"query": "heron", "namespaces": [PLACE]})
                return "read" if reply.json["results"] else "notice" if reply.json["notices"] else "nothing"
            reply = olivia.get(f"memories/{memory}/")
            return "read" if reply.status == 200 else str(reply.json["code"])
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        results = Counter(pool.map(read, range(200)))
    assert results["read"] == 99
    assert results["read"] + results["notice"] + results["quota_exhausted"] == 200
    run_jobs()
    present = olivia.get(f"subscriptions/{made['id']}/").json
    assert (present["used"], present["reads"], present["reads_left"]) == (100, 100, 0)
    (agreed,) = charlie.get("contracts/").json["results"]
    assert (agreed["reads"], agreed["used"], agreed["subscriber"]) == (100, 100, "Acme")
    here = olivia.get(f"subscriptions/{made['id']}/invocations/?page_size=200").json
    there = charlie.get(f"contracts/{agreed['id']}/invocations/?page_size=200").json
    assert here["count"] == 100
    order = [sorted(row["results"], key=lambda read: read["number"]) for row in (here, there)]
    assert order[0] == order[1]
    assert [row["number"] for row in order[0]] == list(range(1, 101))
    evidence(row=18, name="quota-of-a-pack", figures={"reads at once": 200, "quota": 100, "given": 100, "on both": 100})


def reads_given(module: ModuleType, world: World, packs: list[UUID]) -> int:
    """The reads that `module` gives to 200 calls at once."""

    def take(_number: int) -> bool:
        try:
            with acting(world.olivia.actor):
                return not module.pack_reads_take(world.olivia.actor, packs)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        return sum(pool.map(take, range(200)))


@pytest.mark.parametrize(
    ("old", "new", "given"),
    [("used < quota", "used < quota", 100), ("used < quota", "used <= quota", 101), ("used + 1", "used", 200)],
    ids=["as it is", "one too many", "uncounted"],
)
def test_mutant_of_the_count_gives_other_reads(
    world: World, olivia: Contract, publication: str, old: str, new: str, given: int
) -> None:
    subscribe(olivia, publication)
    with acting(world.olivia.actor):
        packs = list(Cube.objects.filter(source=Source.PACK).values_list("namespace_id", flat=True))
    assert reads_given(mutant(pack_reads, old, new), world, packs) == given


def test_new_period_has_its_own_reads(olivia: Contract, charlie: Contract, superuser: Superuser) -> None:
    made = subscribe(olivia, offer_pack(charlie, *TEXTS, reads=1, period="day"))
    assert olivia.search("heron", namespaces=[PLACE])
    assert not olivia.search("heron", namespaces=[PLACE])
    with superuser() as database:
        database.execute("UPDATE vault_subscription SET period_from = period_from - interval '1 day'")
    assert olivia.get(f"subscriptions/{made['id']}/").json["used"] == 0
    assert olivia.search("heron", namespaces=[PLACE])
    assert not olivia.search("heron", namespaces=[PLACE])


def test_expired_contract_opens_nothing(olivia: Contract, charlie: Contract, superuser: Superuser) -> None:
    publication = offer_pack(charlie, *TEXTS, days=30)
    made = subscribe(olivia, publication)
    (first, *_rest) = olivia.search("heron", namespaces=[PLACE])
    with superuser() as database:
        database.execute("UPDATE vault_subscription SET valid_to = now()")
    assert olivia.search("heron", namespaces=[PLACE]) == []
    for address in (f"memories/{first['id']}/", f"memories/{first['id']}/versions/"):
        refused = olivia.get(address)
        assert (refused.status, refused.json["code"]) == (403, "contract_expired")
    assert olivia.get(f"subscriptions/{made['id']}/").json["state"] == "expired"
    again = subscribe(olivia, publication)
    assert again["state"] == "active"
    assert len(olivia.search("heron", namespaces=[PLACE])) == 3


def test_contract_opens_memories_for_none_but_its_purposes(olivia: Contract, charlie: Contract) -> None:
    publication = offer_pack(charlie, *TEXTS, purposes=["research", "teaching"])
    body = {"publication": publication, "purposes": ["sales"]}
    assert olivia.post("subscriptions/", body).json["errors"][0]["field"] == "purposes"
    made = subscribe(olivia, publication, purposes=["research"])
    assert made["purposes"] == ["research"]
    asked = {"query": "heron", "namespaces": [PLACE]}
    assert olivia.post("memories/search/", asked).json["results"] == []
    assert olivia.post("memories/search/", asked, x_memory_purpose="teaching").json["results"] == []
    assert len(olivia.post("memories/search/", asked, x_memory_purpose="research").json["results"]) == 3


def test_revoked_contract_leaves_nothing(
    olivia: Contract, charlie: Contract, publication: str, superuser: Superuser
) -> None:
    persona = olivia.post("personas/", {"name": "Ranger", "kind": "agent"}).json["id"]
    made = subscribe(olivia, publication, persona=persona)
    memory = olivia.search("heron", namespaces=[PLACE])[0]["id"]
    assert min(counts(superuser).values()) > 0
    run_jobs()
    (agreed,) = charlie.get("contracts/").json["results"]
    revoked = charlie.post(f"contracts/{agreed['id']}/revoke/", {"reason": "Unpaid."})
    assert (revoked.status, revoked.json["state"]) == (200, "revoked")
    run_jobs()
    present = olivia.get(f"subscriptions/{made['id']}/").json
    assert (present["state"], present["reason"], present["version"]) == ("revoked", "Unpaid.", None)
    assert olivia.get(f"memories/{memory}/").status == 404
    assert olivia.search("heron", namespaces=[PLACE]) == []
    assert set(counts(superuser).values()) == {0}
    assert charlie.post(f"contracts/{agreed['id']}/revoke/", {"reason": "Unpaid."}).status == 409


def test_uninstalled_pack_leaves_nothing_and_can_be_installed_again(
    olivia: Contract, charlie: Contract, publication: str, superuser: Superuser
) -> None:
    made = subscribe(olivia, publication)
    assert olivia.delete(f"subscriptions/{made['id']}/").status == 202
    assert olivia.search("heron", namespaces=[PLACE]) == []
    again = subscribe(olivia, publication)
    run_jobs()
    assert len(olivia.search("heron", namespaces=[PLACE])) == 3
    assert olivia.delete(f"subscriptions/{again['id']}/").status == 202
    run_jobs()
    assert set(counts(superuser).values()) == {0}
    assert [contract["state"] for contract in charlie.get("contracts/").json["results"]] == ["ended", "ended"]
    assert charlie.get("publications/own/").json["results"][0]["subscribers"] == 0
    assert olivia.delete(f"subscriptions/{again['id']}/").status == 409


def test_second_subscription_is_refused(olivia: Contract, publication: str) -> None:
    subscribe(olivia, publication)
    assert olivia.post("subscriptions/", {"publication": publication}).status == 409


@pytest.mark.parametrize("who", ["alice", "bob", "ada"])
def test_subscription_without_permission_is_refused(
    who: str, world: World, olivia: Contract, publication: str, superuser: Superuser
) -> None:
    client = contract(world, who)
    assert client.post("subscriptions/", {"publication": publication}).status == 403
    assert set(counts(superuser).values()) == {0}
    made = f"subscriptions/{subscribe(olivia, publication)['id']}/"
    assert client.delete(made).status == 403
    assert client.patch(made, {"delivery": "push"}).status == 403
    assert client.post(f"{made}upgrade/", {"version": "1.0.0"}).status == 403
    assert olivia.get(made).json["state"] == "active"


def test_agreement_is_shown_to_nobody_but_its_two_sides(olivia: Contract, charlie: Contract, publication: str) -> None:
    made = subscribe(olivia, publication)
    assert charlie.get(f"subscriptions/{made['id']}/").status == 404
    assert charlie.delete(f"subscriptions/{made['id']}/").status == 404
    (agreed,) = charlie.get("contracts/").json["results"]
    for method, address, body in (
        ("GET", "", None),
        ("GET", "invocations/", None),
        ("GET", "invoice/", None),
        ("POST", "revoke/", {"reason": "x"}),
    ):
        assert olivia.send(method, f"contracts/{agreed['id']}/{address}", body).status == 404
    assert olivia.post("subscriptions/", {"publication": str(MISSING)}).status == 404


def test_invoice_states_the_reads_of_a_month(olivia: Contract, charlie: Contract, publication: str) -> None:
    subscribe(olivia, publication)
    for _ in range(3):
        assert olivia.search("heron", namespaces=[PLACE])
    run_jobs()
    (agreed,) = charlie.get("contracts/").json["results"]
    invoice: dict[str, Any] = charlie.get(f"contracts/{agreed['id']}/invoice/").json
    assert (invoice["reads"], invoice["price"], invoice["provider"]) == (3, "EUR 10 a month", "manual")
    assert "- To: Acme" in invoice["document"]
    assert "- Reads: 3" in invoice["document"]
    assert charlie.get(f"contracts/{agreed['id']}/invoice/?month=2001-01").json["reads"] == 0
    assert charlie.get(f"contracts/{agreed['id']}/invoice/?month=May").status == 400


def test_subscription_to_a_part_takes_tagged_and_near_memories_through_updates(
    world: World, olivia: Contract, bob: Contract, charlie: Contract
) -> None:
    pack = pack_of(charlie, "birds")
    texts = {"The heron nests by the mill.": ["Nests"], "Wind turns the old sail.": [], "The swift eats gnats.": []}
    ids = [charlie.add(text, namespace="/birds", tags=tags)["id"] for text, tags in texts.items()]
    made = publish_version(charlie, build_version(charlie, pack, ids))
    taken = {"tags": ["nests"], "query": "Which gnats does the swift eat?"}
    subscription = subscribe(olivia, made["id"], **taken)
    here = f"subscriptions/{subscription['id']}/"
    asked = "namespace=/packs/other/birds"
    assert {name: subscription[name] for name in taken} == taken
    assert set(olivia.list_contents(asked)) == {"The heron nests by the mill.", "The swift eats gnats."}
    ids += [charlie.add(text, namespace="/birds", tags=["NESTS"])["id"] for text in ("Eggs are blue.",)]
    ids += memories_of(charlie, "A mill grinds corn.")
    publish_version(charlie, build_version(charlie, pack, ids[1:], "1.1.0"))
    run_jobs()
    plan = olivia.post(f"{here}upgrade/?dry_run=true", {"version": "1.1.0"}).json
    assert {change["after"] or change["before"] for change in plan["changes"]} == {
        "Eggs are blue.",
        "The heron nests by the mill.",
    }
    assert olivia.post(f"{here}upgrade/", {"version": "1.1.0"}).status == 202
    run_jobs()
    assert set(olivia.list_contents(asked)) == {"Eggs are blue.", "The swift eats gnats."}
    for client, status in ((bob, 403), (charlie, 404)):
        assert client.patch(here, {"tags": []}).status == status
    assert olivia.patch(here, {"tags": ["none"], "query": ""}).json["tags"] == ["none"]
    run_jobs()
    assert olivia.list_contents(asked) == []
    persona = olivia.post("personas/", {"name": "Ranger", "kind": "agent"}).json["id"]
    page, address = signed_in(world.olivia), f"/store/subscriptions/{subscription['id']}/"
    assert "Mount on Ranger" in page.get(address).content.decode()
    assert page.post(f"{address}mount/", {"place": f"persona {persona}"}).status_code == 303
    assert "Mount on Ranger" not in page.get(address).content.decode()
    form = {"range": "*", "delivery": "pull", "tags": "", "query": ""}
    assert page.post(address, {**form, "query": "x" * 301}).status_code == 422
    assert page.post(address, form).status_code == 303
    run_jobs()
    assert len(olivia.list_contents(asked)) == 4


def test_memories_of_a_pack_have_the_dates_of_the_pack_in_answers(olivia: Contract, charlie: Contract) -> None:
    pack = pack_of(charlie, "rails")
    happened = charlie.add("The viaduct was opened.", event_time="2019-05-02T12:00:00Z")["id"]
    message = {"role": "user", "content": "The tunnel is damp.", "timestamp": "2018-03-04T12:00:00Z"}
    said = charlie.post("memories/", {"messages": [message], "infer": False}).json["results"][0]["id"]
    plain = charlie.add("The depot has nine tracks.")["id"]
    made = publish_version(charlie, build_version(charlie, pack, [happened, said, plain]))
    built = charlie.get(f"packs/{pack}/versions/1.0.0/").json["created_at"]
    subscribe(olivia, made["id"])
    memories = olivia.get("memories/?namespace=/packs/other/rails").json["results"]
    dates = {memory["content"]: (memory["said_at"], memory["event_time"]) for memory in memories}
    assert dates["The tunnel is damp."] == ("2018-03-04T12:00:00Z", "2018-03-04T12:00:00Z")
    assert dates["The viaduct was opened."] == (None, "2019-05-02T12:00:00Z")
    assert dates["The depot has nine tracks."][0] is not None
    assert built <= dates["The depot has nine tracks."][0] < memories[0]["created_at"]
    conversation = olivia.post("conversations/", {}).json["id"]
    assert olivia.post("mounts/", {"namespace": "/packs/other/rails", "conversation": conversation}).status == 201
    for question, date in (("Is the tunnel damp?", "4 March 2018"), ("Was the viaduct opened?", "2 May 2019")):
        answer = olivia.post(f"conversations/{conversation}/turns/", {"content": question}).json["content"]
        assert date in answer
