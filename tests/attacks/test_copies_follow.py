"""Copies follow their original: answers that quote it, answers that rest on it, memories made from it, titles."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.test import override_settings
from pytest_httpserver import HTTPServer

from governance.vocabulary import RoleName
from memos_web.config import LlmChoice
from tests.factories import World, client_for, person_add
from tests.governance.access.decisions.test_mutants import replace_function
from tests.governance.access.grants.test_grants import give_grant
from tests.governance.mutants import mutant
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract, contract
from tests.vault.chat.test_model import answers_with
from tests.vault.outbox import run_jobs
from tests.vault.web.test_memory_list import rows_of
from vault.content.drafts import CubeDraft, SourceRef
from vault.cubes.inserted_quotes import VERDICTS
from vault.cubes.services import cubes_add
from vault.models.cube import CubeQuerySet
from vault.reader.phrases import PHRASES
from vault.reviews import selectors, withdrawals
from vault.vocabulary import SourceKind

Superuser = Callable[[], psycopg.Connection]
SECRET = "wolverine"
FACT = f"The key to the boathouse hangs behind the {SECRET} painting."
QUESTION = "Where does the key to the boathouse hang?"


@pytest.fixture
def alice(world: World) -> Contract:
    return contract(world, "alice")


@pytest.fixture
def bob(world: World) -> Contract:
    return contract(world, "bob")


@pytest.fixture
def olivia(world: World) -> Contract:
    return contract(world, "olivia")


@pytest.fixture
def charlie(world: World) -> Contract:
    return contract(world, "charlie")


@pytest.fixture
def model(httpserver: HTTPServer) -> Iterator[HTTPServer]:
    choice = LlmChoice(url=httpserver.url_for("/v1"), key="k", model="tiny")
    with override_settings(MEMOS_LLM=choice):
        yield httpserver


def ask_question(reader: Contract, question: str = QUESTION, **settings: Any) -> str:
    """Ask in a conversation of its own; the address of its turns."""
    turns = f"conversations/{reader.post('conversations/', settings).json['id']}/turns/"
    assert reader.post(turns, {"content": question}).status == 201
    return turns


def last(reader: Contract, turns: str) -> dict[str, Any]:
    found: dict[str, Any] = reader.get(turns).json["results"][-1]
    return found


def withdraw(way: str, memory_id: str, owner: Contract, root: psycopg.Connection) -> None:
    address = f"memories/{memory_id}/"
    if way == "delete":
        assert owner.delete(address).status == 204
    elif way == "purge":
        assert owner.delete(f"{address}?purge=true").status == 204
    elif way == "redact":
        assert owner.post(f"{address}redact/", {"version": 1}).status == 200
    else:
        root.execute("UPDATE vault_cube SET expires_at = clock_timestamp() WHERE id = %s", [memory_id])


WAYS = ("delete", "purge", "redact", "expire")


@each_case("way", WAYS)
def test_a_withdrawn_memory_leaves_nothing_in_answers_that_quote_it_or_rest_on_it(
    alice: Contract, model: HTTPServer, superuser: Superuser, way: str
) -> None:
    memory_id = alice.add(FACT)["id"]
    answers_with(model, f"Behind the {SECRET} painting [1].")
    quoting, resting = ask_question(alice, model="extractive"), ask_question(alice)
    for turns in (quoting, resting):
        turn = last(alice, turns)
        assert SECRET in turn["content"]
        assert (turn["withheld"], turn["citations"][0]["available"]) == (False, True)
    withdraw(way, memory_id, alice, superuser())
    quote, rest = last(alice, quoting), last(alice, resting)
    assert quote["content"] == "From your memories:\n[1] (no longer available)"
    assert (quote["withheld"], rest["withheld"]) == (False, True)
    assert rest["content"] is None
    assert quote["citations"] == rest["citations"] == [{"marker": 1, "available": False}]
    everything = [alice.get("memories/"), alice.post("memories/search/", {"query": SECRET, "top_k": 100})]
    assert not [reply for reply in everything if SECRET in reply.body.decode()]


@each_case("way", WAYS)
@each_case(
    ("fact", "question", "verdict"),
    [
        ("Marta is allergic to peanuts.", "Is Marta allergic to peanuts?", "Yes. "),
        ("Marta is not allergic to peanuts.", "Is Marta allergic to peanuts?", "No. "),
        ("马塔对花生过敏。", "马塔对花生过敏吗？", "是的。"),
    ],
)
def test_a_yes_or_no_goes_with_the_memory_that_it_was_taken_from(
    alice: Contract, superuser: Superuser, way: str, fact: str, question: str, verdict: str
) -> None:
    memory_id = alice.add(fact)["id"]
    turns = ask_question(alice, question)
    assert last(alice, turns)["content"].startswith(verdict)
    withdraw(way, memory_id, alice, superuser())
    assert not last(alice, turns)["content"].startswith(VERDICTS)


def test_every_verdict_is_one_that_goes_with_its_memory() -> None:
    assert all(phrases[name].startswith(VERDICTS) for phrases in PHRASES.values() for name in ("yes", "no"))


def test_no_stored_answer_holds_the_words_that_it_quotes(alice: Contract, world: World) -> None:
    alice.add(FACT)
    ask_question(alice, model="extractive")
    run_jobs()
    chats = alice.get("memories/?source=chat&semantic_type=dialogue").json["results"]
    (answer,) = [memory for memory in chats if SECRET in memory["content"]]
    assert SECRET not in str(answer["keywords"])
    place = {"namespaces": [answer["namespace"]["path"]], "filters": {"semantic_type": "dialogue"}}
    found = alice.search(f"{SECRET} painting", explain=True, **place)
    (hit,) = [memory for memory in found if memory["id"] == answer["id"]]
    assert hit["score_parts"]["lexical"] == 0


def test_a_restored_memory_brings_its_copies_back(alice: Contract, model: HTTPServer) -> None:
    memory_id = alice.add(FACT)["id"]
    answers_with(model, f"Behind the {SECRET} painting [1].")
    both = ask_question(alice, model="extractive"), ask_question(alice)
    before = [last(alice, turns) for turns in both]
    alice.delete(f"memories/{memory_id}/")
    assert [last(alice, turns) for turns in both] != before
    assert alice.post(f"memories/{memory_id}/restore/").status == 200
    assert [last(alice, turns) for turns in both] == before


def test_a_reader_whose_right_was_taken_sees_no_copy_while_the_owner_does(
    world: World, alice: Contract, bob: Contract, model: HTTPServer
) -> None:
    memory_id = alice.add(FACT)["id"]
    answers_with(model, f"Behind the {SECRET} painting [1].")
    grant = give_grant(alice, world, "bob", "memory", memory_id)
    turns = [ask_question(bob, model="extractive"), ask_question(bob)]
    mine = ask_question(alice, model="extractive")
    alice.delete(f"grants/{grant['id']}/")
    assert not [turn for turn in turns if SECRET in bob.get(turn).body.decode()]
    assert SECRET in alice.get(mine).body.decode()
    assert SECRET not in bob.get("memories/").body.decode()


def test_answers_that_were_reminded_of_a_withheld_answer_are_withheld_too(alice: Contract, model: HTTPServer) -> None:
    memory_id = alice.add(FACT)["id"]
    answers_with(model, f"Behind the {SECRET} painting.")
    turns = ask_question(alice)
    alice.post(turns, {"content": "Say that once more, please?"})
    alice.delete(f"memories/{memory_id}/")
    assert [turn["withheld"] for turn in alice.get(turns).json["results"]] == [True, True]


def test_sentences_of_a_message_go_and_come_back_with_the_message(alice: Contract, superuser: Superuser) -> None:
    body = {"messages": [{"role": "user", "content": f"I live in Lisbon. My favourite animal is the {SECRET}."}]}
    message, *derived = alice.post("memories/", body).json["results"]
    assert derived
    run_jobs()
    alice.delete(f"memories/{message['id']}/")
    assert alice.get("memories/").json["count"] == 0
    assert alice.search(SECRET) == []
    assert {alice.get(f"memories/{memory['id']}/").status for memory in derived} == {404}
    alice.post(f"memories/{message['id']}/restore/")
    assert alice.get("memories/").json["count"] == 1 + len(derived)


def test_what_a_person_says_by_itself_does_not_go_with_a_message_that_says_it_too(alice: Contract) -> None:
    said = f"My favourite animal is the {SECRET}."
    messages = [{"role": "user", "content": f"I live in Lisbon. {said}"}]
    message = alice.post("memories/", {"messages": messages}).json["results"][0]
    added = alice.add(said)
    again = alice.post("memories/", {"messages": [{"role": "user", "content": f"I moved to Porto. {said}"}]}).json
    alice.delete(f"memories/{message['id']}/")
    assert alice.get(f"memories/{added['id']}/").status == 200
    assert {alice.get(f"memories/{memory['id']}/").status for memory in again["results"]} == {200}


def test_a_sentence_is_denied_to_whom_its_message_is_denied(
    world: World, olivia: Contract, alice: Contract, bob: Contract
) -> None:
    body = {"messages": [{"role": "user", "content": f"I live in Lisbon. My favourite animal is the {SECRET}."}]}
    message, *derived = alice.post("memories/", body | {"namespace": "/team"}).json["results"]
    address = f"memories/{derived[-1]['id']}/"
    assert bob.get(address).status == 200
    give_grant(olivia, world, "bob", "memory", message["id"], effect="deny")
    assert bob.get(address).status == 404
    assert SECRET not in bob.get("memories/").body.decode()
    assert SECRET not in bob.post("memories/search/", {"query": SECRET}).body.decode()
    assert alice.get(address).status == 200


def test_a_title_follows_the_question_that_it_was_taken_from(alice: Contract) -> None:
    turns = ask_question(alice, f"What do we know of the {SECRET}?")
    conversation = turns.removesuffix("turns/")
    assert SECRET in alice.get(conversation).json["title"]
    dialogue = alice.get("memories/?semantic_type=dialogue").json["results"]
    for memory in [memory for memory in dialogue if SECRET in memory["content"]]:
        alice.delete(f"memories/{memory['id']}/")
    assert alice.get(conversation).json["title"] == ""
    assert SECRET not in alice.get("conversations/").body.decode()


def test_a_reply_is_not_repeated_once_a_memory_behind_it_expired(
    alice: Contract, model: HTTPServer, superuser: Superuser
) -> None:
    memory_id = alice.add(FACT)["id"]
    answers_with(model, f"Behind the {SECRET} painting.")  # it cites nothing
    turns = f"conversations/{alice.post('conversations/', {}).json['id']}/turns/"
    body = {"content": QUESTION}
    assert alice.post(turns, body, idempotency_key="k").status == 201
    withdraw("expire", memory_id, alice, superuser())
    assert alice.post(turns, body, idempotency_key="k").status == 403


def test_a_reader_that_forgets_the_sources_shows(alice: Contract, model: HTTPServer) -> None:
    """The mutant: what is readable is asked without regard to sources."""
    memory_id = alice.add(FACT)["id"]
    answers_with(model, f"Behind the {SECRET} painting [1].")
    turns = ask_question(alice)
    alice.delete(f"memories/{memory_id}/")
    with replace_function(
        CubeQuerySet, "resting_on", "return self.filter(", "return self.exclude(pk=None) or self.filter("
    ):
        assert SECRET in alice.get(turns).body.decode()


def derive_text(world: World, memory_id: str, content: str = f"In short: the {SECRET} guards a key.") -> str:
    """Make a derived text from a stored memory, as a later feature would."""
    draft = CubeDraft(content, namespace="/team", sources=(SourceRef(UUID(memory_id), 1, SourceKind.TEXT),))
    return str(cubes_add(actor=world.alice.actor, drafts=[draft])[0].cube.id)


def reviews(reader: Contract) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = reader.get("reviews/?kind=source_withdrawn").json["results"]
    return found


@pytest.mark.parametrize("way", WAYS)
def test_a_derived_text_is_withheld_until_a_person_keeps_it(
    world: World, alice: Contract, bob: Contract, olivia: Contract, superuser: Superuser, way: str
) -> None:
    derived = derive_text(world, memory_id := alice.add(FACT, namespace="/team")["id"])
    assert (alice.get(f"memories/{derived}/").json["parents"], reviews(alice)) == ([memory_id], [])
    withdraw(way, memory_id, alice, superuser())
    assert alice.get(f"memories/{derived}/").status == 404
    (review,) = reviews(alice)
    assert (review["memory_id"], review["status"]) == (derived, "open")
    assert SECRET in review["content"], "who decides sees what about"
    assert SECRET not in bob.get("reviews/").body.decode(), "who may not decide does not"
    assert SECRET in olivia.get("reviews/").body.decode()
    assert bob.post(f"reviews/{review['id']}/accept/", {}).status == 403
    assert alice.get(f"memories/{derived}/").status == 404
    assert alice.post(f"reviews/{review['id']}/accept/", {}).status == 200
    assert SECRET in alice.get(f"memories/{derived}/").json["content"]
    assert reviews(alice) == []


def test_findings_of_a_withheld_text_are_shown_only_to_who_may_decide(
    world: World, alice: Contract, bob: Contract
) -> None:
    memory_id = alice.add(FACT, namespace="/team")["id"]
    derive_text(world, memory_id, "In short: ask li.lei@example.cn for the key.")
    alice.delete(f"memories/{memory_id}/")
    assert [len(review["findings"]) for review in reviews(alice)] == [1]
    assert [review["findings"] for review in reviews(bob)] == [[]]
    assert "li.lei" in signed_in(world.alice).get("/reviews/").content.decode()
    assert "li.lei" not in signed_in(world.bob).get("/reviews/").content.decode()
    assert bob.post(f"reviews/{reviews(bob)[0]['id']}/reject/").status == 403


def test_a_rejected_text_is_deleted_and_one_whose_source_came_back_needs_no_review(
    world: World, alice: Contract, bob: Contract, charlie: Contract
) -> None:
    memory_id = alice.add(FACT, namespace="/team")["id"]
    derived = derive_text(world, memory_id)
    alice.delete(f"memories/{memory_id}/")
    (review,) = reviews(alice)
    alice.post(f"memories/{memory_id}/restore/")
    assert reviews(alice) == []
    assert alice.get(f"memories/{derived}/").status == 200
    alice.delete(f"memories/{memory_id}/")
    assert [review["id"] for review in reviews(alice)] == [review["id"]]
    assert bob.post(f"reviews/{review['id']}/reject/").status == 403
    assert charlie.post(f"reviews/{review['id']}/reject/").status == 404
    assert alice.post(f"reviews/{review['id']}/reject/").status == 200
    alice.post(f"memories/{memory_id}/restore/")
    assert alice.get(f"memories/{derived}/").status == 404


def test_what_was_erased_leaves_no_sealed_copy(
    world: World, alice: Contract, model: HTTPServer, superuser: Superuser
) -> None:
    """Extracts go with it, and the words of a model's answers; what a person must decide about stays until then."""
    answers_with(model, f"The {SECRET} [1].")
    body = {"messages": [{"role": "user", "content": f"I live in Lisbon. My favourite animal is the {SECRET}."}]}
    message, *derived = alice.post("memories/", body).json["results"]
    ask_question(alice, "What is my favourite animal?")
    alice.delete(f"memories/{message['id']}/?purge=true")
    root = superuser()
    ids = [memory["id"] for memory in derived]
    assert root.execute("SELECT count(*) FROM vault_cube WHERE id = ANY(%s)", [ids]).fetchone() == (0,)
    left = "SELECT count(*) FROM vault_cubeversion AS v JOIN vault_turn ON answer_id = v.cube_id WHERE sealed <> ''"
    assert root.execute(left).fetchone() == (0,)


def test_a_text_that_waits_is_not_shown_to_whom_its_source_was_closed(
    world: World, alice: Contract, olivia: Contract
) -> None:
    source = alice.add(FACT, namespace="/team")["id"]
    closed = derive_text(world, source)
    other = alice.add("The weir has four gates.", namespace="/team")["id"]
    derive_text(world, other, f"In short: four gates, and the {SECRET}.")
    give_grant(olivia, world, "alice", "memory", source, effect="deny")
    alice.delete(f"memories/{other}/")
    olivia.delete(f"memories/{source}/")
    shown = {review["content"] for review in reviews(alice)}
    by_memory = {review["memory_id"]: review["id"] for review in reviews(alice)}
    assert alice.post(f"reviews/{by_memory[closed]}/accept/", {}).status == 403, "keeping it would open it to them"
    assert alice.get(f"memories/{closed}/").status == 404
    assert shown - {None} == {f"In short: four gates, and the {SECRET}."}


def test_review_that_asks_nothing_about_the_sources_shows(
    world: World, alice: Contract, olivia: Contract, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = alice.add(FACT, namespace="/team")["id"]
    derive_text(world, source)
    give_grant(olivia, world, "alice", "memory", source, effect="deny")
    olivia.delete(f"memories/{source}/")
    assert [review["content"] for review in reviews(alice)] == [None]
    broken = mutant(withdrawals, ".exclude(Exists(closed))", "")
    monkeypatch.setattr(selectors, "select_for_decision", broken.select_for_decision)
    assert SECRET in reviews(alice)[0]["content"]


def test_its_owner_or_who_reads_private_memories_decides_on_a_text_of_a_purged_source(
    world: World, alice: Contract, olivia: Contract
) -> None:
    erin = client_for(person_add(world.acme, "erin@acme.example", RoleName.EDITOR).key.text)
    memory_id = alice.add(FACT, namespace="/team")["id"]
    derived = derive_text(world, memory_id)
    alice.delete(f"memories/{memory_id}/?purge=true")
    (review,) = erin.get("reviews/").json["results"]
    assert (review["memory_id"], review["content"]) == (derived, None)
    assert erin.post(f"reviews/{review['id']}/accept/", {}).status == 403
    assert erin.get(f"memories/{derived}/").status == 404
    assert olivia.post(f"reviews/{review['id']}/accept/", {}).status == 200
    assert erin.get(f"memories/{derived}/").status == 200


def test_keeping_a_text_keeps_the_one_that_was_shown_and_none_of_before(world: World, alice: Contract) -> None:
    memory_id = alice.add(FACT, namespace="/team")["id"]
    derived = derive_text(world, memory_id)
    assert alice.patch(f"memories/{derived}/", {"content": "It guards a key."}, if_match='"1"').status == 200
    alice.delete(f"memories/{memory_id}/")
    (review,) = reviews(alice)
    assert review["content"] == "It guards a key."
    assert alice.post(f"reviews/{review['id']}/accept/", {}).status == 200
    assert alice.get(f"memories/{derived}/").json["content"] == "It guards a key."
    assert SECRET not in alice.get(f"memories/{derived}/versions/").body.decode()
    assert alice.post(f"memories/{derived}/rollback/", {"version": 1}).status == 409


def test_trash_shows_no_sentence_whose_message_was_withdrawn(
    world: World, alice: Contract, superuser: Superuser
) -> None:
    body = {"messages": [{"role": "user", "content": f"I live in Lisbon. My favourite animal is the {SECRET}."}]}
    message, *derived = alice.post("memories/", body).json["results"]
    browser = signed_in(world.alice)
    for memory in derived:
        assert alice.delete(f"memories/{memory['id']}/").status == 204
    rows = [memory["id"] for memory in derived]
    assert {*rows} == {*rows_of(browser.get("/memories/?inactive=true").content.decode())}
    withdraw("expire", message["id"], alice, superuser())
    assert rows_of(browser.get("/memories/?inactive=true").content.decode()) == [message["id"]]
    assert SECRET not in alice.get("memories/?deleted=true").body.decode()


def test_the_inbox_page_shows_what_waits_to_who_may_decide_and_keeps_or_deletes(world: World, alice: Contract) -> None:
    memory_id = alice.add(FACT, namespace="/team")["id"]
    derived = derive_text(world, memory_id)
    alice.delete(f"memories/{memory_id}/")
    browser = signed_in(world.alice)
    page = browser.get("/reviews/").content.decode()
    assert "A memory that this one was made from is no longer available." in page
    assert SECRET in page
    assert SECRET not in signed_in(world.bob).get("/reviews/").content.decode()
    (review,) = reviews(alice)
    assert browser.get(f"/reviews/{review['id']}/accept/").status_code == 303
    asked = browser.post(f"/reviews/{review['id']}/accept/")
    assert (asked.status_code, "This cannot be undone." in asked.content.decode()) == (200, True)
    assert browser.post(f"/reviews/{review['id']}/accept/", {"confirmed": "yes"}).status_code == 303
    assert alice.get(f"memories/{derived}/").status == 200
