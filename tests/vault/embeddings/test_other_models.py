"""Tests of served models with other vector lengths, unavailable former models, commands and vector indexes."""

import json
from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from pytest_django import Settings
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from memos_web.settings.databases import APP_ROLE, OWNER_ROLE
from tests.factories import World
from tests.harness.databases import Clone
from tests.vault.embeddings.moves import (
    NEW,
    OLD,
    active_model_of,
    add_memories,
    configure,
    embedded_cubes,
    find_best_hit,
)
from tests.vault.outbox import run_jobs
from vault.embeddings.vector_index import nearest_by_index, vector_index_name

HERON = "The heron nests by the mill."
SERVED = "openai/mini"
Superuser = Callable[[], psycopg.Connection]


def letters(request: Request) -> Response:
    """Vectors of three numbers: how many of three letters a text has."""
    rows = [
        {"index": at, "embedding": [text.count(letter) + 0.01 for letter in "ehr"]}
        for at, text in enumerate(request.get_json()["input"])
    ]
    return Response(json.dumps({"data": rows}), mimetype="application/json")


@pytest.fixture
def server(httpserver: HTTPServer) -> str:
    httpserver.expect_request("/v1/embeddings").respond_with_handler(letters)
    return httpserver.url_for("/v1")


@pytest.fixture
def served(world: World, settings: Settings, server: str) -> World:
    """alice's memories have vectors of three numbers by a server's model."""
    configure(settings, "openai", model="mini", url=server)
    add_memories(world.alice.actor, HERON, "An otter swims in the lake.")
    run_jobs()
    assert active_model_of(world.alice.actor) == SERVED
    return world


@pytest.fixture
def as_owner(world: World) -> Iterator[None]:
    """Django is connected as the role that owns the tables."""
    connection.close()
    connection.settings_dict["USER"] = OWNER_ROLE
    yield
    connection.close()
    connection.settings_dict["USER"] = APP_ROLE


def run_command(*command: str) -> dict[str, Any]:
    out = StringIO()
    call_command(*command, "--json", stdout=out)
    reply: dict[str, Any] = json.loads(out.getvalue())
    return reply


def test_vectors_of_two_lengths_live_side_by_side(served: World, settings: Settings, server: str) -> None:
    actor = served.alice.actor
    configure(settings, "hashing", url=server)
    add_memories(actor, "The bittern booms.")
    run_jobs()
    assert (len(embedded_cubes(actor, SERVED)), len(embedded_cubes(actor, OLD))) == (3, 1)
    assert find_best_hit(actor, HERON).parts.dense > 0.99
    assert find_best_hit(actor, "The bittern booms.").parts.dense > 0.99
    run_command("reembed", "--tenant", "acme")
    run_jobs()
    assert (active_model_of(actor), len(embedded_cubes(actor, SERVED)), len(embedded_cubes(actor, OLD))) == (OLD, 0, 3)
    assert find_best_hit(actor, HERON).parts.dense > 0.99


def test_configured_model_answers_if_the_former_one_cannot_be_built(served: World, settings: Settings) -> None:
    actor = served.alice.actor
    configure(settings, "hashing")  # and no address any more
    add_memories(actor, "The bittern booms.")
    run_jobs()
    assert (len(embedded_cubes(actor, SERVED)), len(embedded_cubes(actor, OLD))) == (2, 1)
    assert find_best_hit(actor, "The bittern booms.").parts.dense > 0.99
    found = find_best_hit(actor, HERON)
    assert (found.view.words.content, found.parts.dense, found.parts.lexical) == (HERON, 0, 1)
    run_command("reembed", "--tenant", "acme")
    run_jobs()
    assert find_best_hit(actor, HERON).parts.dense > 0.99


def test_failing_former_model_delays_neither_writes_nor_the_move(
    served: World, settings: Settings, httpserver: HTTPServer, server: str
) -> None:
    actor = served.alice.actor
    configure(settings, "hashing", url=server)
    httpserver.clear()
    httpserver.expect_request("/v1/embeddings").respond_with_data("", status=400)
    add_memories(actor, "The bittern booms.")
    run_jobs()
    assert (len(embedded_cubes(actor, SERVED)), len(embedded_cubes(actor, OLD))) == (2, 1)
    run_command("reembed", "--tenant", "acme")
    run_jobs()
    assert find_best_hit(actor, HERON).parts.dense > 0.99


def test_a_question_that_the_former_model_cannot_embed_is_refused(
    served: World, settings: Settings, httpserver: HTTPServer, server: str
) -> None:
    configure(settings, "hashing", url=server)
    httpserver.clear()
    httpserver.expect_request("/v1/embeddings").respond_with_data("", status=400)
    reply = served.client("alice").post("memories/search/", {"query": "heron"})
    assert (reply.status, reply.code) == (503, "provider_unavailable")


def test_command_reports_the_started_moves(world: World, settings: Settings) -> None:
    add_memories(world.alice.actor, HERON)
    add_memories(world.charlie.actor, "The kingfisher dives.")
    run_jobs()
    assert run_command("reembed", "--all") == {"tenants": []}
    configure(settings, "universal-sentence-encoder")
    told = {row["tenant"]["slug"]: row for row in run_command("reembed", "--all")["tenants"]}
    assert {name: row["tenant"]["id"] for name, row in told.items()} == {
        "acme": str(world.acme.id),
        "other": str(world.other.id),
    }
    assert {(row["from"], row["to"], row["started"]) for row in told.values()} == {(OLD, NEW, True)}
    (again,) = run_command("reembed", "--tenant", "acme")["tenants"]
    assert again["started"] is False
    with pytest.raises(CommandError, match="There is no tenant nobody"):
        run_command("reembed", "--tenant", "nobody")
    told_to_a_person = StringIO()
    call_command("reembed", "--tenant", "acme", stderr=told_to_a_person)
    assert told_to_a_person.getvalue().startswith("acme  ")


def test_only_the_owner_makes_an_index(world: World) -> None:
    with pytest.raises(CommandError, match="MEMOS_DATABASE_ROLE=owner"):
        run_command("vector_index")


@pytest.mark.usefixtures("as_owner")
def test_an_index_is_made_for_the_configured_model_and_used(superuser: Superuser) -> None:
    vector = [1.0] * 256
    assert nearest_by_index(OLD, len(vector)) is None
    assert run_command("vector_index") == {
        "index": vector_index_name(OLD),
        "model": OLD,
        "dimension": 256,
        "made": True,
    }
    assert run_command("vector_index")["made"] is False
    distance = nearest_by_index(OLD, len(vector))
    assert distance is not None
    assert nearest_by_index(OLD, None) is None
    with superuser().transaction(), superuser().cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
        cursor.execute(
            f"EXPLAIN SELECT cube_id FROM vault_embedding WHERE model = '{OLD}' ORDER BY {distance} LIMIT 5",
            {"vector": json.dumps(vector)},
        )
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert vector_index_name(OLD) in plan


@pytest.mark.usefixtures("as_owner")
def test_an_index_that_an_interrupted_run_left_is_made_anew(superuser: Superuser) -> None:
    run_command("vector_index")
    superuser().execute(
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", [vector_index_name(OLD)]
    )
    assert nearest_by_index(OLD, 256) is None
    assert run_command("vector_index")["made"] is True
    assert nearest_by_index(OLD, 256) is not None


@pytest.mark.usefixtures("as_owner")
def test_the_default_model_has_its_index_from_the_start(settings: Settings) -> None:
    configure(settings, "universal-sentence-encoder")
    assert run_command("vector_index") == {
        "index": "embedding_nearest",
        "model": NEW,
        "dimension": 512,
        "made": False,
    }


def test_without_a_database_no_index_is_reported(database: Clone, settings: Settings) -> None:
    configure(settings, "universal-sentence-encoder")
    connection.close()
    connection.settings_dict["NAME"] = "no_such_database"
    with pytest.raises(CommandError, match="the database does not answer"):
        run_command("vector_index")


@pytest.mark.usefixtures("as_owner")
def test_vectors_that_are_too_long_are_refused(settings: Settings, httpserver: HTTPServer) -> None:
    rows = [{"index": 0, "embedding": [1.0] * 4001}]
    httpserver.expect_request("/v1/embeddings").respond_with_json({"data": rows})
    configure(settings, "openai", model="long", url=httpserver.url_for("/v1"))
    with pytest.raises(CommandError, match="4001 numbers cannot be indexed"):
        run_command("vector_index")
