"""A search with a reranker: the best are read again and change places; who sees what, and the audit log, do not."""

import json
from collections.abc import Callable
from uuid import UUID

import psycopg
import pytest
from pytest_django import Settings
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from governance.actor import Actor
from governance.database import acting
from governance.models import AuditEntry
from governance.vocabulary import Verb
from memos_web.config import RerankerChoice
from tests.factories import World
from tests.vault.outbox import run_jobs
from vault.content.drafts import CubeDraft
from vault.cubes.services import cubes_add
from vault.retrieval.queries import SearchQuery
from vault.retrieval.selectors import memories_search
from vault.vocabulary import SearchMode

QUESTION = "Who is the man in the garden?"
KEYWORDS = "Garden man, garden man."  # what the ranking by words likes best
ANSWER = "The one who is in the garden by the wall."  # has more of the question's words
ASIDE = "The mill burnt down."
Superuser = Callable[[], psycopg.Connection]


@pytest.fixture
def memories(world: World) -> dict[str, UUID]:
    """alice's shared memories, by content."""
    drafts = [CubeDraft(content=content, namespace="/team") for content in (KEYWORDS, ANSWER, ASIDE)]
    added = cubes_add(actor=world.alice.actor, drafts=drafts)
    run_jobs()
    return {draft.content: item.cube.id for draft, item in zip(drafts, added, strict=True)}


@pytest.fixture
def overlap(settings: Settings) -> None:
    settings.MEMOS_RERANKER = RerankerChoice(family="overlap", model="", url="", key="")


def set_reranker(settings: Settings, httpserver: HTTPServer) -> None:
    settings.MEMOS_RERANKER = RerankerChoice(family="openai", model="r", url=httpserver.url_for("/v1"), key="")


def contents(
    actor: Actor, *, top_k: int = 10, mode: SearchMode = SearchMode.HYBRID, min_score: float = 0.0
) -> list[str]:
    search = SearchQuery(query=QUESTION, top_k=top_k, mode=mode, min_score=min_score)
    return [hit.view.words.content for hit in memories_search(actor=actor, search=search)]


def audited_ids(actor: Actor) -> list[list[UUID]]:
    """Return the results of each search so far by its audit entry."""
    with acting(actor):
        rows = AuditEntry.objects.filter(verb=Verb.MEMORY_SEARCHED).order_by("id")
        return [row.object_ids for row in rows]


def test_it_changes_the_order(world: World, memories: dict[str, UUID], settings: Settings) -> None:
    assert contents(world.alice.actor)[0] == KEYWORDS
    settings.MEMOS_RERANKER = RerankerChoice(family="overlap", model="", url="", key="")
    assert contents(world.alice.actor) == [ANSWER, KEYWORDS, ASIDE]
    search = SearchQuery(query=QUESTION)
    scores = [hit.score for hit in memories_search(actor=world.alice.actor, search=search)]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


@pytest.mark.usefixtures("overlap")
def test_what_was_asked_in_a_chat_stays_behind_what_answers_it(world: World, memories: dict[str, UUID]) -> None:
    cubes_add(actor=world.alice.actor, drafts=[CubeDraft(content=QUESTION, namespace="/users/alice/chat")])
    run_jobs()
    assert contents(world.alice.actor) == [ANSWER, KEYWORDS, ASIDE, QUESTION]


@pytest.mark.usefixtures("overlap")
def test_other_modes_are_left_as_they_are(world: World, memories: dict[str, UUID]) -> None:
    assert contents(world.alice.actor, mode=SearchMode.LEXICAL)[0] == KEYWORDS


@pytest.mark.usefixtures("overlap")
def test_the_audit_log_names_what_was_returned_and_not_what_was_reranked(
    world: World, memories: dict[str, UUID]
) -> None:
    assert contents(world.alice.actor, top_k=1) == [ANSWER]
    assert audited_ids(world.alice.actor) == [[memories[ANSWER]]]
    assert contents(world.alice.actor, min_score=0.99) == []
    assert audited_ids(world.alice.actor)[1:] == [[]]


@pytest.mark.usefixtures("overlap")
def test_nobody_sees_more_than_without_it(world: World, memories: dict[str, UUID]) -> None:
    own = CubeDraft(content="Who is the man in the garden? Nobody knows but me.")
    cubes_add(actor=world.alice.actor, drafts=[own])
    assert contents(world.alice.actor)[0] == own.content
    assert contents(world.bob.actor) == [ANSWER, KEYWORDS, ASIDE]
    assert contents(world.charlie.actor) == []
    assert audited_ids(world.charlie.actor) == [[]]


def test_a_reranker_that_fails_is_a_failure_and_nothing_is_returned(
    world: World, memories: dict[str, UUID], settings: Settings, httpserver: HTTPServer
) -> None:
    set_reranker(settings, httpserver)
    httpserver.expect_request("/v1/rerank").respond_with_data("", status=400)
    reply = world.client("alice").post("memories/search/", {"query": QUESTION})
    assert (reply.status, reply.code) == (503, "provider_unavailable")
    assert audited_ids(world.alice.actor) == []


def test_it_is_asked_outside_any_transaction_and_what_was_deleted_meanwhile_is_not_returned(
    world: World, memories: dict[str, UUID], settings: Settings, httpserver: HTTPServer, superuser: Superuser
) -> None:
    open_transactions = []
    beside = superuser()

    def slow(request: Request) -> Response:
        sessions = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'memos_app' AND datname = current_database() "
        row = beside.execute(sessions + "AND state = 'idle in transaction'").fetchone()
        open_transactions.append(row)
        beside.execute("UPDATE vault_cube SET deleted_at = now() WHERE id = %s", [memories[ANSWER]])
        rows = [
            {"index": at, "relevance_score": "who" in text} for at, text in enumerate(request.get_json()["documents"])
        ]
        return Response(json.dumps({"results": rows}), mimetype="application/json")

    set_reranker(settings, httpserver)
    httpserver.expect_request("/v1/rerank").respond_with_handler(slow)
    assert contents(world.alice.actor, top_k=2) == [KEYWORDS, ASIDE]
    assert audited_ids(world.alice.actor) == [[memories[KEYWORDS], memories[ASIDE]]]
    assert open_transactions == [(0,)]


@pytest.mark.usefixtures("overlap")
def test_as_many_come_back_as_there_are(world: World, memories: dict[str, UUID]) -> None:
    drafts = [CubeDraft(content=f"Row {number}.", namespace="/team") for number in range(60)]
    cubes_add(actor=world.alice.actor, drafts=drafts)
    run_jobs()
    for top_k, expected in ((1, 1), (55, 55), (100, 63)):
        rows = contents(world.bob.actor, top_k=top_k)
        assert len(set(rows)) == len(rows) == expected
        assert rows[0] == ANSWER
