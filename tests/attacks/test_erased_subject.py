"""Search files and backups for bytes of an erased data subject (row 8, for subjects).

The attacker has the data directory with the write-ahead log, today's key store, everything that it opens, and the
sealed bytes of a backup that was made before.
"""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
import pytest
from django.conf import settings
from pytest_httpserver import HTTPServer

from governance.database import acting
from governance.keys.services import open_sealed
from tests.attacks.test_copies_follow import ask_question, last, model  # noqa: F401  the fixture of a model
from tests.attacks.test_purged_bytes import count_traces, files_below, swap_halves, traces
from tests.factories import World
from tests.harness.evidence import Evidence
from tests.harness.servers import Servers, needs_maintain
from tests.vault.api.contract import Contract, contract
from tests.vault.chat.test_model import answers_with
from tests.vault.outbox import run_jobs
from vault.content.words import words_open
from vault.cubes.storage import storage_reclaim
from vault.models import Conversation, CubeVersion, Embedding
from vault.providers.registry import blob_store

Superuser = Callable[[], psycopg.Connection]
REFERENCE = "customer-4711"
CANARY = "vermilion"
QUESTION = "Which colour is the door of the customer?"


@pytest.fixture
def alice(world: World) -> Contract:
    return contract(world, "alice")


@pytest.fixture
def olivia(world: World) -> Contract:
    return contract(world, "olivia")


def store_memories(alice: Contract, count: int) -> list[str]:
    """Memories about the subject: with versions, titles and metadata, the last one in the archive."""
    ids = []
    for number in range(count):
        made = alice.add(
            f"The door of the customer is {CANARY}, said {number}, {uuid4().hex}.", namespace="/team", subject=REFERENCE
        )
        change = {"title": f"Door {CANARY} {number}", "metadata": {"colour": CANARY}}
        assert alice.patch(f"memories/{made['id']}/", change, if_match='"1"').status == 200
        ids.append(str(made["id"]))
    return ids


def vectors(connection: psycopg.Connection, ids: list[str]) -> list[bytes]:
    """The vectors of memories, as they lie on disk."""
    rows = connection.execute("SELECT halfvec_send(vector) FROM vault_embedding WHERE cube_id = ANY(%s)", [ids])
    return [swap_halves(bytes(sent)[4:]) for (sent,) in rows.fetchall()]


def open_rows(world: World) -> str:
    """Everything that the rows which are left say, with today's keys."""
    with acting(world.olivia.actor):
        versions = list(CubeVersion.objects.all())
        titles = [bytes(conversation.sealed_title) for conversation in Conversation.objects.all()]
        words = [
            words_open(tenant_id=version.tenant_id, cube_id=version.cube_id, number=version.number, blob=version.sealed)
            for version in versions
        ]
    assert len(versions) > 1
    return repr([vars(word) for word in words]) + repr(titles)


@needs_maintain
def test_nothing_about_an_erased_subject_is_left(
    world: World,
    alice: Contract,
    olivia: Contract,
    model: HTTPServer,  # noqa: F811
    superuser: Superuser,
    servers: Servers,
    evidence: Evidence,
    full_size: bool,
) -> None:
    ids = store_memories(alice, 20 if full_size else 4)
    run_jobs()
    answers_with(model, f"The door is {CANARY} [1].")
    quoting, resting = ask_question(alice, QUESTION, model="extractive"), ask_question(alice, QUESTION)
    assert CANARY in last(alice, quoting)["content"]
    assert CANARY in last(alice, resting)["content"]
    run_jobs()
    connection = superuser()
    wanted: dict[str, list[bytes]] = {"sealed": [], "vector": [], "hash": []}
    for id in ids:
        for kind, some in traces(connection, UUID(id)).items():
            wanted[kind] += some
    # Whole: these vectors are mostly zeros, and a piece of one stands in other files by chance.
    wanted["vector"] = vectors(connection, ids)
    backup = connection.execute("SELECT cube_id, number, sealed FROM vault_cubeversion WHERE cube_id = ANY(%s)", [ids])
    sealed = [(cube_id, number, bytes(blob)) for cube_id, number, blob in backup.fetchall()]
    connection.execute("CHECKPOINT")
    before = count_traces(servers, connection, wanted)
    assert all(before[kind] == len(set(some)) for kind, some in wanted.items()), "the search finds what is there"
    assert alice.post(f"memories/{ids[-1]}/transition/", {"to": "archived"}).status == 200
    run_jobs()
    assert [entry.name.split("/")[1] for entry in blob_store().entries()] == [ids[-1]] * 2
    subject = olivia.get(f"subjects/?reference={REFERENCE}").json["results"][0]["id"]
    export = olivia.post(f"subjects/{subject}/export/").json["job"]["id"]
    run_jobs()
    document = json.loads(olivia.get(f"subjects/{subject}/exports/{export}/json/").body)
    assert {memory["id"] for memory in document["memories"]} == set(ids)
    assert all(CANARY in version["content"] for memory in document["memories"] for version in memory["versions"])
    turns = {turn["conversation"] for memory in document["memories"] for turn in memory["conversation_turns"]}
    assert turns == {address.split("/")[1] for address in (quoting, resting)}
    assert CANARY in open_rows(world)

    erased = olivia.post(f"subjects/{subject}/erase/").json["job"]["id"]
    run_jobs()
    assert olivia.get(f"jobs/{erased}/").json["status"] == "succeeded"
    assert storage_reclaim(wait=timedelta()) > 0
    left = count_traces(servers, connection, wanted)
    assert left == dict.fromkeys(wanted, 0)
    for turns_of in (quoting, resting):
        assert CANARY not in json.dumps(last(alice, turns_of))
    assert CANARY not in open_rows(world)
    assert list(blob_store().entries()) == []
    files = list(files_below(Path(settings.DATA_DIR)))
    assert not [path for path in files if CANARY.encode() in path.read_bytes()]
    tenant_id = world.alice.actor.tenant_id
    recovered = [
        open_sealed(tenant_id=tenant_id, place=cube_id.bytes + number.to_bytes(4), blob=blob)
        for cube_id, number, blob in sealed
    ]
    assert recovered == [None] * len(sealed)
    with acting(world.alice.actor):
        assert not Embedding.objects.filter(cube_id__in=ids).exists()
    figures = {
        "memories about the subject": len(ids),
        "memories in an export made before": len(document["memories"]),
        "pieces looked for in files and log": sum(len(set(some)) for some in wanted.values()),
        "found before": sum(before.values()),
        "found after the erasure": sum(left.values()),
        "sealed versions of a backup that today's keys open": sum(text is not None for text in recovered),
    }
    evidence(row=8, name="erased-subject", figures=figures)
