"""Terms of a pack travel with its memories: exports, copies, trials, quotas and revocations. charlie publishes."""

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from django.db import connections
from django.test import override_settings
from pytest_httpserver import HTTPServer

from tests.factories import World
from tests.governance.mutants import mutant
from tests.governance.web.visitors import signed_in
from tests.harness.product import wait_until
from tests.vault.api.contract import Contract
from tests.vault.layers.test_model import replies
from tests.vault.outbox import run_jobs
from tests.vault.policies.policy_factories import create_policy
from tests.vault.store.pack_factories import (
    TEXTS,
    build_version,
    offer_pack,
    pack_of,
    publish_version,
    subscribe,
)
from vault.exchange.items import FORMAT
from vault.lifecycle import summaries
from vault.store import trials

PLACE = "/packs/other/herons"
WAITING = b"""SELECT count(*)::int FROM pg_stat_activity
WHERE datname = current_database() AND usename = 'memos_app' AND wait_event_type = 'Lock'"""
OWN = "The gull nests on the roof."
Superuser = Callable[[], psycopg.Connection]


def export(client: Contract, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """The finished job of an export."""
    reply = client.post("exports/", body or {})
    assert reply.status == 202, reply
    run_jobs()
    job: dict[str, Any] = client.get(f"jobs/{reply.json['job']['id']}/").json
    assert job["status"] == "succeeded", job
    return job


def file_of(client: Contract, job: dict[str, Any], **headers: str) -> list[dict[str, Any]]:
    """The memories of an export as JSON Lines."""
    lines = client.get(f"exports/{job['id']}/jsonl/", **headers).body.splitlines()[1:]
    return [json.loads(line) for line in lines]


def texts_of(items: list[dict[str, Any]]) -> set[str]:
    return {version["content"] for item in items for version in item["versions"]}


def import_file(client: Contract, items: list[dict[str, Any]], query: str = "") -> dict[str, Any]:
    content = b"\n".join(json.dumps(line).encode() for line in ({"format": FORMAT}, *items))
    return import_content(client, content, f"jsonl{query}")


def import_content(client: Contract, content: bytes, query: str) -> dict[str, Any]:
    reply = client.raw(f"imports/?format={query}", content, content_type="application/octet-stream")
    assert reply.status in {200, 202}, reply
    run_jobs()
    answer: dict[str, Any] = reply.json
    return answer if reply.status == 200 else client.get(f"jobs/{answer['job']['id']}/").json["result"]["counts"]


@pytest.fixture
def free(olivia: Contract, charlie: Contract) -> dict[str, Any]:
    """A subscription under terms that allow an export."""
    return subscribe(
        olivia, offer_pack(charlie, *TEXTS, reads=100, export=True, purposes=["study"]), purposes=["study"]
    )


def test_export_leaves_out_what_the_terms_keep_and_says_how_many(
    olivia: Contract, bob: Contract, charlie: Contract
) -> None:
    made = subscribe(olivia, offer_pack(charlie, *TEXTS, reads=100))
    assert made["export"] is False
    olivia.add(OWN, namespace="/team")
    chosen = [memory["id"] for memory in olivia.search("heron", namespaces=[PLACE])]
    for client, body in ((olivia, {}), (bob, {}), (olivia, {"ids": chosen}), (olivia, {"filters": {"tags": []}})):
        reply = client.post("exports/", body)
        if reply.status == 400:
            continue
        run_jobs()
        job = client.get(f"jobs/{reply.json['job']['id']}/").json
        assert job["result"]["codes"] == {"contract_export": len(TEXTS)}
        assert texts_of(file_of(client, job)).isdisjoint(TEXTS)
    assert olivia.get(f"subscriptions/{made['id']}/").json["reads"] == 1  # the search


def test_allowed_export_asks_the_purpose_and_is_one_read(olivia: Contract, free: dict[str, Any]) -> None:
    job = export(olivia)
    assert job["result"]["codes"] == {}
    assert file_of(olivia, job) == []
    assert texts_of(file_of(olivia, job, x_memory_purpose="study")) == set(TEXTS)
    assert olivia.get(f"subscriptions/{free['id']}/").json["reads"] == 1


def test_turn_of_a_chat_counts_a_read_only_if_the_pack_may_answer_it(olivia: Contract, charlie: Contract) -> None:
    made = subscribe(olivia, offer_pack(charlie, *TEXTS, reads=9))
    conversation = olivia.post("conversations/", {}).json["id"]
    assert olivia.post("mounts/", {"namespace": PLACE, "conversation": conversation}).status == 201
    for question, reads in (
        ("Does the printer need more toner before Monday evening?", 0),
        ("Where does the heron nest?", 1),
    ):
        answer = olivia.post(f"conversations/{conversation}/turns/", {"content": question}).json
        assert bool(answer["citations"]) == bool(reads)
        assert olivia.get(f"subscriptions/{made['id']}/").json["reads"] == reads


def test_exported_memory_of_a_pack_is_no_own_memory_when_imported(
    olivia: Contract, charlie: Contract, free: dict[str, Any]
) -> None:
    items = file_of(olivia, export(olivia), x_memory_purpose="study")
    assert len(items) == len(TEXTS)
    assert import_file(olivia, items, "&dry_run=true")["of_packs"] == len(TEXTS)
    assert import_file(olivia, items)["of_packs"] == len(TEXTS)
    for item in items:  # the origin is taken out of the file: the text is still the pack's
        item["id"] = f"x{item['id']}"
        for version in item["versions"]:
            version["metadata"] = {}
    assert import_file(olivia, items)["stored"] == 0


def test_copy_in_another_organisation_keeps_origin_and_trust(
    olivia: Contract, charlie: Contract, free: dict[str, Any]
) -> None:
    items = file_of(olivia, export(olivia), x_memory_purpose="study")
    assert import_file(charlie, items, "&namespace=/copies")["stored"] == len(TEXTS)
    copies = charlie.search("heron", namespaces=["/copies"])
    assert {(row["source"], row["pack"], row["trust"]) for row in copies} == {("pack", "other/herons", 0.4)}
    copy = copies[0]["id"]
    assert charlie.post(f"memories/{copy}/copy/", {"namespace": "/mine"}).status == 409
    split = charlie.post(f"memories/{copy}/split/", {"parts": ["The heron.", "It nests."]}).json["results"]
    assert {(row["source"], row["trust"]) for row in split} == {("pack", 0.4)}
    pack = pack_of(charlie, "mine")
    version = build_version(charlie, pack, [row["id"] for row in (*copies, *split)])
    assert version["state"] == "blocked"
    assert version["report"]["dropped"] == {"pack": len(copies) - 1 + len(split)}  # a split memory is merged


@pytest.mark.parametrize("form", ["jsonl", "markdown"])
def test_every_form_of_an_export_tells_the_origin(form: str, olivia: Contract, charlie: Contract) -> None:
    headed = "Herons nest in April.\n\n# Food\nThe heron eats frogs.\n```\n# no heading\n```"
    subscribe(olivia, offer_pack(charlie, headed, *TEXTS[:1], reads=100, export=True))
    content = olivia.get(f"exports/{export(olivia)['id']}/{form}/").body
    assert import_content(charlie, content if isinstance(content, bytes) else content.encode(), form)["stored"]
    copies = [row for row in charlie.get("memories/?page_size=50").json["results"] if row["source"] != "api"]
    assert {(row["source"], row["pack"]) for row in copies} == {("pack", "other/herons")}
    assert not any("from the pack" in row["content"] for row in copies)


def test_text_of_a_pack_typed_anew_is_not_published(olivia: Contract, charlie: Contract) -> None:
    subscribe(olivia, offer_pack(charlie, *TEXTS))
    copy = olivia.add(TEXTS[0], namespace="/team")["id"]
    own = olivia.add(OWN, namespace="/team")["id"]
    version = build_version(olivia, pack_of(olivia, "gulls"), [copy, own])
    assert version["report"]["dropped"] == {"pack": 1}
    assert version["report"]["counts"]["as_is"] == 1


def try_everything(client: Contract, publication: str) -> tuple[set[str], dict[str, Any]]:
    """The texts of the pack that all trials together show, and the last answer."""
    seen: set[str] = set()
    answer: dict[str, Any] = {}
    for first in range(0, 40, 5):
        queries = [f"What does bird {number} eat?" for number in range(first, first + 5)]
        answer = client.post(f"publications/{publication}/try/", {"queries": queries}).json
        seen |= {memory["text"] for result in answer["results"] for memory in result["with_pack"] if memory["of_pack"]}
    return seen, answer


def test_trials_show_a_tenth_of_a_pack_to_an_organisation(olivia: Contract, charlie: Contract, world: World) -> None:
    texts = [f"Bird {number} eats seed number {number}." for number in range(40)]
    publication = offer_pack(charlie, *texts)
    seen, answer = try_everything(olivia, publication)
    assert len(seen) == 4
    assert (answer["shown"], answer["limit"]) == (4, 4)
    assert "4" in signed_in(world.olivia).get("/store/other/herons/try/").content.decode()


def test_mutant_of_the_share_shows_more(olivia: Contract, charlie: Contract, world: World) -> None:
    texts = [f"Bird {number} eats seed number {number}." for number in range(40)]
    publication = offer_pack(charlie, *texts)
    module = mutant(trials, "len(shown) < limit", "True")
    listing = olivia.get(f"publications/{publication}/").json["id"]
    found = module.publication_try(
        actor=world.olivia.actor, publication_id=listing, questions=[f"What does bird {n} eat?" for n in range(5)]
    )
    assert found.shown > found.limit


def test_new_subscription_goes_on_with_the_reads_of_the_period(olivia: Contract, charlie: Contract) -> None:
    publication = offer_pack(charlie, *TEXTS, reads=2)
    made = subscribe(olivia, publication)
    assert olivia.search("heron", namespaces=[PLACE])
    assert olivia.delete(f"subscriptions/{made['id']}/").status == 202
    run_jobs()
    again = subscribe(olivia, publication)
    assert (again["used"], again["reads_left"]) == (1, 1)
    assert olivia.search("heron", namespaces=[PLACE])
    refused = olivia.post("memories/search/", {"query": "heron", "namespaces": [PLACE]}).json
    assert (refused["results"], len(refused["notices"])) == ([], 1)
    assert "no more reads in this period" in refused["notices"][0]


def test_revoked_subscriber_subscribes_again_once_the_publisher_allows_it(
    world: World, olivia: Contract, charlie: Contract
) -> None:
    publication = offer_pack(charlie, *TEXTS)
    subscribe(olivia, publication)
    (agreed,) = charlie.get("contracts/").json["results"]
    contract = f"contracts/{agreed['id']}/"
    assert charlie.post(f"{contract}allow/", {}).status == 409  # it is not revoked
    assert charlie.post(f"{contract}revoke/", {"reason": "Unpaid."}).status == 200
    memory = olivia.search("heron", namespaces=[PLACE])
    assert memory == []  # before any job ran
    run_jobs()
    assert olivia.post("subscriptions/", {"publication": publication}).status == 409
    assert olivia.post(f"{contract}allow/", {}).status == 404
    browser = signed_in(world.charlie)
    page = f"/store/contracts/{agreed['id']}/"
    assert "Allow another subscription" in browser.get(page).content.decode()
    assert browser.post(f"{page}allow/").status_code == 303
    assert charlie.get(contract).json["may_return"] is True
    assert charlie.post(f"{contract}allow/", {}).status == 409
    assert subscribe(olivia, publication)["state"] == "active"


def test_read_waits_for_another_longer_than_the_lock_timeout(
    olivia: Contract, charlie: Contract, superuser: Superuser
) -> None:
    """As the last of many readers at once does: each holds the count until its transaction ends."""
    made = subscribe(olivia, offer_pack(charlie, *TEXTS, reads=100))
    watcher = superuser()
    name = watcher.info.dbname
    watcher.execute(f"ALTER ROLE memos_app IN DATABASE \"{name}\" SET lock_timeout = '200ms'".encode())

    def read() -> int:
        try:
            return olivia.post("memories/search/", {"query": "heron", "namespaces": [PLACE]}).status
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool, superuser() as other:
        with other.transaction():
            other.execute("SELECT FROM vault_subscription WHERE id = %s FOR UPDATE", [made["id"]])
            waiting = pool.submit(read)
            wait_until(lambda: watcher.execute(WAITING).fetchone() == (1,), seconds=10)
            time.sleep(1)
            assert not waiting.done()
        assert waiting.result(timeout=30) == 200
    assert olivia.get(f"subscriptions/{made['id']}/").json["reads"] == 1


def test_refusal_names_its_reason(olivia: Contract, charlie: Contract, superuser: Superuser) -> None:
    made = subscribe(olivia, offer_pack(charlie, *TEXTS, reads=100, purposes=["study"]), purposes=["study"])
    body = {"query": "heron", "namespaces": [PLACE]}
    memory = olivia.post("memories/search/", body, x_memory_purpose="study").json["results"][0]["id"]

    def refusal(purpose: str) -> tuple[str, str]:
        reply = olivia.get(f"memories/{memory}/", x_memory_purpose=purpose)
        (notice,) = olivia.post("memories/search/", body, x_memory_purpose=purpose).json["notices"]
        return reply.json["code"], notice

    code, notice = refusal("sales")
    assert code == "contract_purpose"
    assert "other purposes" in notice
    changes = (
        ("quota = used", "quota_exhausted", "no more reads in this period"),
        ("quota = NULL, valid_to = now()", "contract_expired", "has expired"),
        ("state = 'ended'", "contract_ended", "has ended"),
        ("state = 'revoked'", "contract_revoked", "revoked"),
    )
    for change, expected, words in changes:
        with superuser() as database:
            database.execute(f"UPDATE vault_subscription SET {change} WHERE id = %s".encode(), [made["id"]])
        code, notice = refusal("study")
        assert code == expected
        assert words in notice


@pytest.fixture
def own_model(olivia: Contract, httpserver: HTTPServer) -> Iterator[list[dict[str, Any]]]:
    """A model that the subscriber runs; what it is sent."""
    asked = replies(httpserver, json.dumps({"sentences": [0]}))
    with override_settings(ALLOW_PRIVATE_ADDRESSES=True):
        body = {"model": "own", "address": httpserver.url_for("/v1"), "key": "sk-own", "retries": 0}
        assert olivia.post("models/", body).status == 201
        yield asked


MANY = tuple(f"Heron {name} nests by the mill." for name in ("Ada", "Bo", "Cy", "Di", "Eve", "Flo"))


def summarise(olivia: Contract) -> None:
    schedule = olivia.post("schedules/", {"kind": "summaries.write", "cron": "0 6 * * *"}).json
    assert olivia.post(f"schedules/{schedule['id']}/run/", {}).status == 202
    run_jobs()


def test_no_job_sends_a_pack_to_the_subscribers_model(
    olivia: Contract, charlie: Contract, own_model: list[dict[str, Any]]
) -> None:
    subscribe(olivia, offer_pack(charlie, *MANY, reads=1, purposes=["study"]), purposes=["study"])
    for number in range(6):
        olivia.add(f"{OWN} Number {number}.", namespace="/roofs")
    summarise(olivia)
    assert OWN in json.dumps(own_model)
    assert [text for text in MANY if text in json.dumps(own_model)] == []


def test_job_that_asks_nothing_about_bound_words_is_detected(
    olivia: Contract, charlie: Contract, own_model: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    subscribe(olivia, offer_pack(charlie, *MANY, reads=1))
    monkeypatch.setattr(summaries, "find_bound_cubes", lambda actor, ids: frozenset())
    summarise(olivia)
    assert [text for text in MANY if text in json.dumps(own_model)] != []


def test_no_job_sends_what_a_purpose_binds_to_a_model(olivia: Contract, own_model: list[dict[str, Any]]) -> None:
    create_policy(olivia, "purpose", {"where": {"namespace": "/clinic"}, "purposes": ["care"]})
    for number in range(6):
        olivia.add(f"Blood group of patient {number} is A.", namespace="/clinic")
        olivia.add(f"{OWN} Number {number}.", namespace="/roofs")
    summarise(olivia)
    assert OWN in json.dumps(own_model)
    assert "Blood group" not in json.dumps(own_model)


def test_stored_reply_of_a_closed_pack_is_not_repeated(
    olivia: Contract, charlie: Contract, superuser: Superuser
) -> None:
    subscribe(olivia, offer_pack(charlie, *TEXTS, reads=2))
    conversation = olivia.post("conversations/", {}).json["id"]
    assert olivia.post("mounts/", {"namespace": PLACE, "conversation": conversation}).status == 201
    address, body = f"conversations/{conversation}/turns/", {"content": "Where do herons nest?"}
    first = olivia.post(address, body, idempotency_key="once")
    assert [text for text in TEXTS if text in first.body.decode()] != []
    assert olivia.post(address, body, idempotency_key="once").body == first.body
    superuser().execute("UPDATE vault_subscription SET used = quota")
    again = olivia.post(address, body, idempotency_key="once")
    assert [text for text in TEXTS if text in again.body.decode()] == []
    assert again.status in {403, 404, 409}


def test_facets_count_no_tag_of_a_closed_pack(olivia: Contract, charlie: Contract, superuser: Superuser) -> None:
    pack = pack_of(charlie, "tagged")
    (memory,) = [charlie.add("The stork nests.", namespace="/birds", tags=["stork-tag"])["id"]]
    offer = publish_version(charlie, build_version(charlie, pack, [memory]), terms={"reads": 5})["id"]
    subscribe(olivia, offer)
    assert "stork-tag" in olivia.get("memories/facets/").body.decode()
    superuser().execute("UPDATE vault_subscription SET used = quota")
    assert "stork-tag" not in olivia.get("memories/facets/").body.decode()
    assert "stork-tag" not in olivia.get("memories/facets/?namespace=/packs/other/tagged").body.decode()


def test_write_on_a_memory_that_quotes_a_closed_pack_is_no_error_and_shows_nothing(
    olivia: Contract, charlie: Contract, superuser: Superuser
) -> None:
    subscribe(olivia, offer_pack(charlie, *TEXTS, reads=5))
    conversation = olivia.post("conversations/", {}).json["id"]
    assert olivia.post("mounts/", {"namespace": PLACE, "conversation": conversation}).status == 201
    assert olivia.post(f"conversations/{conversation}/turns/", {"content": "Where do herons nest?"}).status == 201
    database = superuser()
    (found,) = database.execute("SELECT answer_id FROM vault_turn").fetchall()
    answer = f"memories/{found[0]}/"
    database.execute("UPDATE vault_subscription SET used = quota")
    calls = [
        olivia.post(f"{answer}copy/", {"namespace": "/mine"}),
        olivia.post(f"{answer}split/", {"parts": ["a", "b"]}),
        olivia.post(f"{answer}freeze/", {"reason": "x"}),
        olivia.patch(answer, {"tags": ["x"]}, if_match='"1"'),
    ]
    assert {reply.status for reply in calls} <= {200, 201, 403, 404, 409, 423, 429}
    assert [text for text in TEXTS for reply in calls if text in reply.body.decode()] == []
