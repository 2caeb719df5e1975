"""Conversations made from a seed."""

from collections import Counter

from benchmarks.search_latency import SEED
from benchmarks.synthetic import SESSION, conversation, questions, unknown_questions
from vault.lexicon.tokens import query_terms, terms


def test_the_same_seed_says_the_same_and_another_seed_does_not() -> None:
    assert conversation(60, 7) == conversation(60, 7)
    assert conversation(60, 7) != conversation(60, 8)


def test_a_smaller_conversation_is_the_beginning_of_a_larger_one() -> None:
    assert conversation(40, 7) == conversation(110, 7)[:40]


def test_sessions_are_full_and_have_two_speakers() -> None:
    turns = conversation(4 * SESSION, 7)
    assert Counter(turn.session for turn in turns) == dict.fromkeys(range(1, 5), SESSION)
    for number in range(1, 5):
        assert len({turn.speaker for turn in turns if turn.session == number}) == 2


def test_no_message_has_the_id_of_another() -> None:
    turns = conversation(200, 7)
    assert len({turn.id for turn in turns}) == len(turns)


def test_few_words_are_common_and_most_are_rare() -> None:
    counts = Counter(word for turn in conversation(1_000, 7) for word in turn.text.rstrip(".").split())
    assert sum(count for _, count in counts.most_common(100)) > 0.5 * counts.total()
    assert sum(count <= 3 for count in counts.values()) > 0.5 * len(counts)


def test_every_question_uses_words_of_a_message() -> None:
    turns = conversation(200, 7)
    said = {word for turn in turns for word in turn.text.rstrip(".").split()}
    for question in questions(turns, 50, 9):
        assert said & set(question.rstrip("?").replace(",", "").split())


def test_no_question_in_unknown_words_has_a_word_that_is_stored() -> None:
    stored = {term for turn in conversation(20_000, SEED) for term in terms(f"{turn.speaker}: {turn.text}")}
    asked = unknown_questions(100, 99)
    assert len(set(asked)) == 100
    for question in asked:
        assert query_terms(question), question
        assert stored.isdisjoint(query_terms(question)), question
