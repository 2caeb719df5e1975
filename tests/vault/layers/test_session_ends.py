"""Profile, knowledge and traits after a conversation has ended, and the chat's use of them."""

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from governance.database import acting
from tests.factories import World
from tests.vault.api.contract import Contract
from tests.vault.layers.test_layers_api import persona_of
from tests.vault.layers.test_long_term import MONDAY, profile, say
from tests.vault.outbox import run_jobs
from vault.layers.session_ends import streams_end_idle
from vault.layers.statements import asked_fields, find_slot, is_about_self
from vault.layers.traits import trait_signs
from vault.models import Page, Stream
from vault.vocabulary import PageLayer

ENGLISH = [
    "My name is Ilse Brandt.",
    "I live in Graz with two dogs.",
    "I work as a bookbinder.",
    "My brother Otto drinks espresso all day.",
    "I can't stand fennel.",
    "Yesterday the tram was late.",
]
CHINESE = [
    "我叫周芷若。",
    "我现在住在厦门。",
    "我在一所中学做老师。",
    "我弟弟特别喜欢喝咖啡。",
    "我不吃辣椒。",
    "昨天下雨了。",
]


def begin_next(client: Contract) -> None:
    """Begin another session, which ends the one before."""
    assert (
        client.post("memories/", {"session_id": "next", "messages": [{"role": "user", "content": "Hi"}]}).status == 201
    )
    run_jobs()


@pytest.mark.parametrize(
    ("texts", "fields", "knowledge", "stranger"),
    [
        (ENGLISH, {"name": "Ilse Brandt", "home": "Graz", "work": "a bookbinder"}, "fennel", "Otto"),
        (CHINESE, {"name": "周芷若", "home": "厦门", "work": "老师"}, "辣椒", "弟弟"),
    ],
    ids=["en", "zh"],
)
def test_profile_holds_statements_about_oneself_when_a_session_ends(
    world: World, alice: Contract, texts: list[str], fields: dict[str, str], knowledge: str, stranger: str
) -> None:
    persona = persona_of(world, "alice")
    say(alice, *texts)
    assert profile(alice, persona) == {}
    begin_next(alice)
    assert profile(alice, persona) == fields
    entries = [row["content"] for row in alice.get(f"personas/{persona}/profile/").json["knowledge"]]
    assert [knowledge in entry for entry in entries] == [True]
    assert not any(stranger in entry for entry in entries)
    traits = {row["dimension"] for row in alice.get(f"personas/{persona}/traits/").json["results"]}
    assert "coffee_tea" not in traits
    before = alice.get(f"personas/{persona}/profile/").json
    begin_next(alice)
    assert alice.get(f"personas/{persona}/profile/").json == before


def test_idle_session_ends_once_and_a_further_message_opens_it(world: World, alice: Contract) -> None:
    persona = persona_of(world, "alice")
    say(alice, "I live in Turku.")
    assert streams_end_idle() == 0
    with acting(world.alice.actor):
        Stream.objects.update(updated_at=Now() - timedelta(hours=1))
    assert streams_end_idle() == 1
    assert streams_end_idle() == 0
    run_jobs()
    assert profile(alice, persona) == {"home": "Turku"}
    say(alice, "I work as a diver.")
    with acting(world.alice.actor):
        assert Stream.objects.get().ended_at is None
        assert Page.objects.filter(layer=PageLayer.SHORT_TERM).count() == 1


def test_messages_of_an_ended_session_match_the_mid_term_layer(alice: Contract, charlie: Contract) -> None:
    say(alice, *ENGLISH)
    begin_next(alice)
    listed = alice.get("memories/?layer=mid_term&page_size=100").json["results"]
    assert "I work as a bookbinder." in {memory["content"] for memory in listed}
    for mode in ("lexical", "dense", "hybrid"):
        (best, *_) = alice.search("bookbinder", filters={"layer": "mid_term"}, mode=mode)
        assert (best["content"], best["layer"]) == ("I work as a bookbinder.", "mid_term")
        assert alice.search("bookbinder", filters={"layer": "short_term"}, mode=mode) == []
    assert charlie.search("bookbinder", filters={"layer": "mid_term"}) == []


def test_bob_and_charlie_get_nothing_of_alices_profile(world: World, alice: Contract, bob: Contract) -> None:
    say(alice, *ENGLISH)
    begin_next(alice)
    assert "bookbinder" in ask(alice, "What do I do for a living?")
    assert "bookbinder" not in ask(bob, "What do I do for a living?")


def ask(client: Contract, question: str) -> str:
    conversation = client.post("conversations/", {}).json["id"]
    answer: str = client.post(f"conversations/{conversation}/turns/", {"content": question}).json["content"]
    return answer


@pytest.mark.parametrize(
    ("question", "answer"),
    [("What's my name?", "Ilse Brandt"), ("Where do I work?", "bookbinder"), ("我住在哪里？", "Graz")],
)
def test_question_for_a_field_is_answered_by_what_last_filled_it(alice: Contract, question: str, answer: str) -> None:
    say(alice, *ENGLISH)
    begin_next(alice)
    assert answer in ask(alice, question)


def test_new_value_of_a_field_is_the_answer(alice: Contract) -> None:
    say(alice, "I live in Graz.")
    say(alice, "I moved to Lund.", start=MONDAY + timedelta(days=1))
    assert "Lund" in ask(alice, "Where do I live?")


@pytest.mark.parametrize(
    ("question", "fields"),
    [
        ("who am I?", {"name"}),
        ("How old am I", {"age", "birth_year", "birthday"}),
        ("Where do I come from?", {"origin"}),
        ("What is my job?", {"work"}),
        ("我叫啥", {"name"}),
        ("我今年多大？", {"age", "birth_year", "birthday"}),
        ("我做什么工作？", {"work"}),
        ("What do I do on Fridays?", set()),
        ("Where does my sister live?", set()),
        ("我姐姐住在哪里？", set()),
    ],
)
def test_question_for_a_field_is_recognised(question: str, fields: set[str]) -> None:
    assert asked_fields(question) == fields


@pytest.mark.parametrize(
    ("text", "is_own"),
    [
        ("I love figs.", True),
        ("We have a canoe.", True),
        ("My favourite film is Ikiru.", True),
        ("My boss loves figs.", False),
        ("The tram was late.", False),
        ("我喜欢无花果。", True),
        ("我们有一条船。", True),
        ("我老板喜欢无花果。", False),
        ("我妈妈说我很懒。", True),
    ],
)
def test_text_is_about_its_speaker(text: str, is_own: bool) -> None:
    assert is_about_self(text) is is_own


def test_fields_are_cut_at_times_and_need_a_job() -> None:
    values: dict[str, Any] = {
        "I moved to Bergen three years ago.": "Bergen",
        "我在银行当经理。": "经理",
        "我1988年出生在大连。": "1988",
        "我是一名护士。": "护士",
    }
    assert {text: slot.value for text in values if (slot := find_slot(text))} == values
    assert find_slot("我在家做饭了。") is None


def test_coffee_of_others_is_no_sign_of_a_trait() -> None:
    assert "coffee_tea" in trait_signs("I drink coffee all day.")
    assert "coffee_tea" not in trait_signs("My aunt drinks coffee all day.")
