"""A message whose name is the persona's, an alias or the member's display name is the reader's own statement."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from tests.factories import World
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from vault.layers.conversation_import import conversations_import
from vault.layers.formats import Imported, Turn
from vault.reader.services import Message
from vault.vocabulary import MessageRole

NOTE = re.compile(r" \([^)]*\d{4}-\d\d-\d\d[^)]*\)")  # the speaker and date of a quote


@dataclass(frozen=True)
class Life:
    """Statements of a person and of another, and questions, each with a part of its answer."""

    own: tuple[str, ...]
    others: tuple[str, ...]
    asked: tuple[tuple[str, str], ...]
    not_theirs: str
    correction: tuple[str, str, str]


ENGLISH = Life(
    own=(
        "I live in Lisbon.",
        "My favourite fruit is quince.",
        "My goal is to lose weight.",
        "My sister is a pilot.",
    ),
    others=("I live in Porto.", "My favourite fruit is the plum."),
    asked=(
        ("Where do I live?", "Lisbon"),
        ("What is my favourite fruit?", "quince"),
        ("What is my goal?", "weight"),
        ("What does my sister do?", "pilot"),
        ("What do you know about me?", "Lisbon"),
    ),
    not_theirs="Porto",
    correction=("Actually, I live in Faro.", "Where do I live?", "Faro"),
)
CHINESE = Life(
    own=("我住在里斯本。", "我最喜欢的水果是榅桲。", "我的目标是减肥。", "我姐姐是飞行员。"),
    others=("我住在波尔图。", "我最喜欢的水果是李子。"),
    asked=(
        ("我住在哪里？", "里斯本"),
        ("我最喜欢的水果是什么？", "榅桲"),
        ("我的目标是什么？", "减肥"),
        ("我姐姐是做什么的？", "飞行员"),
        ("你知道我的什么？", "里斯本"),
    ),
    not_theirs="波尔图",
    correction=("其实我住在法鲁。", "我住在哪里？", "法鲁"),
)
LIVES = pytest.mark.parametrize("life", [ENGLISH, CHINESE], ids=["en", "zh"])
Store = Callable[[World, Contract, Sequence[tuple[str, str]]], None]


def post(world: World, alice: Contract, said: Sequence[tuple[str, str]], *, infer: bool = True) -> None:
    messages = [{"role": "user", "content": text, **({"name": name} if name else {})} for name, text in said]
    body = {"messages": messages, "persona": "Ana", "session_id": "diary", "infer": infer}
    assert alice.post("memories/", body).status == 201


def post_verbatim(world: World, alice: Contract, said: Sequence[tuple[str, str]]) -> None:
    post(world, alice, said, infer=False)


def import_chat(world: World, alice: Contract, said: Sequence[tuple[str, str]]) -> None:
    turns = tuple(
        Turn("chat", Message(role=MessageRole.USER, content=text, name=name, message_id=str(number)), answers=False)
        for number, (name, text) in enumerate(said)
    )
    imported = Imported(turns=turns, facts=(), profiles=())
    conversations_import(actor=world.alice.actor, imported=imported, persona="Ana", namespace=None)


def ask(alice: Contract, *questions: str) -> list[str]:
    """The replies in one conversation of Ana, without the speakers and dates of quotes."""
    talk = alice.post("conversations/", {"persona": "Ana", "title": "Questions"}).json["id"]
    replies = [alice.post(f"conversations/{talk}/turns/", {"content": question}) for question in questions]
    assert {reply.status for reply in replies} == {201}
    return [NOTE.sub("", reply.json["content"]) for reply in replies]


@pytest.fixture
def ana(alice: Contract) -> str:
    made = alice.post("personas/", {"name": "Ana", "attributes": {"aliases": "Anita; 安娜"}})
    assert made.status == 201
    found: str = made.json["id"]
    return found


@LIVES
@pytest.mark.parametrize("store", [post, post_verbatim, import_chat])
def test_named_message_answers_as_an_unnamed_one(
    world: World, alice: Contract, ana: str, life: Life, store: Store
) -> None:
    questions = [question for question, _ in life.asked]
    replies = []
    for name in ("", "Ana"):
        store(world, alice, [(name, text) for text in life.own])
        run_jobs()
        replies.append(ask(alice, *questions))
        for memory in alice.get("memories/?persona=Ana&page_size=200").json["results"]:
            assert alice.delete(f"memories/{memory['id']}/?purge=true").status in {204, 404}
        for talk in alice.get("conversations/").json["results"]:
            assert alice.delete(f"conversations/{talk['id']}/").status == 204
    assert replies[0] == replies[1]
    for reply, (question, answer) in zip(replies[1][:-1], life.asked[:-1], strict=True):
        assert answer in reply, question


@LIVES
@pytest.mark.parametrize("name", ["ANA", "Anita", "安娜", "alice"])
def test_aliases_and_the_display_name_are_the_reader_and_others_are_not(
    world: World, alice: Contract, ana: str, life: Life, name: str
) -> None:
    post(world, alice, [(name, life.own[0]), *(("Rowan", text) for text in life.others)])
    run_jobs()
    (question, answer), *_, (about, _) = life.asked
    for reply in ask(alice, question, about):
        assert answer in reply
        assert life.not_theirs not in reply


@LIVES
def test_correction_supersedes_only_the_statement_of_the_reader(
    world: World, alice: Contract, ana: str, life: Life
) -> None:
    said = [("Rowan", life.others), ("Ana", life.own[:2])]
    post(world, alice, [(name, " ".join(statements)) for name, statements in said])
    run_jobs()
    correction, question, answer = life.correction
    _, reply = ask(alice, correction, question)
    assert answer in reply
    rows = alice.get("memories/?persona=Ana&page_size=200").json["results"]
    ended = {row["content"] for row in rows if row["superseded_by"]}
    assert ended == {life.own[0]}


def test_name_stays_the_speaker_of_its_memory(world: World, alice: Contract, ana: str) -> None:
    post(world, alice, [("Ana", "I live in Lisbon.")])
    assert [row["speaker"] for row in alice.search("Lisbon", filters={"speaker": "Ana"})] == ["Ana"]
