import pytest

from vault.reader.rules import Passage, best_sentences

GROUP = Passage("g", "Hey Mel! I went to a LGBTQ support group yesterday. It was so powerful.", 0.9)
TEA = Passage("t", "Caroline drinks green tea. She never drinks coffee.", 0.5)
ASKED = Passage("q", "When did Caroline go to the support group?", 1.0)


def test_it_quotes_the_sentence_that_answers_and_says_where_it_is_from() -> None:
    first = best_sentences("When did Caroline go to the LGBTQ support group?", [TEA, GROUP], 3)[0]
    assert (first.key, first.sentence) == ("g", "I went to a LGBTQ support group yesterday.")


def test_it_answers_in_chinese() -> None:
    passages = [
        Passage("a", "你好！我的猫叫咪咪。它很可爱。", 0.4),
        Passage("b", "我昨天去了北京。天气很好。", 0.5),
    ]
    assert best_sentences("我的猫叫什么名字？", passages, 1)[0].sentence == "我的猫叫咪咪。"
    assert best_sentences("你什么时候去北京的？", passages, 1)[0].sentence == "我昨天去了北京。"


def test_it_quotes_each_passage_once_and_no_more_than_the_limit() -> None:
    quotes = best_sentences("What does Caroline drink at the support group?", [GROUP, TEA], 5)
    assert sorted(quote.key for quote in quotes) == ["g", "t"]
    assert len(best_sentences("What does Caroline drink?", [GROUP, TEA], 1)) == 1
    assert best_sentences("What does Caroline drink?", [GROUP, TEA], 0) == []


def test_question_is_not_quoted_when_a_statement_answers() -> None:
    assert [quote.key for quote in best_sentences(ASKED.text, [ASKED, GROUP], 5)] == ["g"]
    inside = Passage("i", "Did you like the support group? Yes I liked it.", 1.0)
    assert best_sentences("Who liked the support group?", [inside], 1)[0].sentence == "Yes I liked it."


def test_a_question_is_quoted_when_there_is_nothing_else() -> None:
    assert [quote.sentence for quote in best_sentences("support group", [ASKED], 2)] == [ASKED.text]


def test_two_passages_that_say_the_same_are_quoted_once_by_the_better_one() -> None:
    again = Passage("again", "So I went to an LGBTQ support group yesterday!", 0.2)
    keys = [quote.key for quote in best_sentences("support group", [again, GROUP], 5)]
    assert keys == ["g"]


def test_what_holds_little_of_the_question_is_not_quoted_beside_what_holds_it() -> None:
    paris = Passage("p", "Jon went to Paris in May.", 0.6)
    cheer = Passage("c", "That is really great Jon!", 1.0)
    assert [quote.key for quote in best_sentences("When was Jon in Paris?", [cheer, paris, TEA], 5)] == ["p"]


def test_a_rare_word_counts_more_than_one_that_all_passages_hold() -> None:
    passages = [
        Passage("1", "Caroline went home.", 1.0),
        Passage("2", "Caroline ate bread.", 1.0),
        Passage("3", "The necklace came from Sweden.", 1.0),
    ]
    assert best_sentences("Caroline necklace", passages, 1)[0].key == "3"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("When did Ada plant the tree?", "Ada planted the tree in May."),
        ("How many apples did the tree give Ada?", "The tree gave Ada twelve apples, 12 in all."),
        ("Why did Ada plant the tree?", "Ada planted the tree because of the shade."),
    ],
)
def test_it_prefers_the_sentence_that_holds_what_is_asked_for(question: str, answer: str) -> None:
    told = "Ada planted the tree herself. Ada planted the tree in May. "
    told += "Ada planted the tree because of the shade. The tree gave Ada twelve apples, 12 in all."
    assert best_sentences(question, [Passage("p", told, 1.0)], 1)[0].sentence == answer


@pytest.mark.parametrize("scores", [(0.0, 0.0), (-3.0, -1.0), (0.01, 0.03)])
def test_scores_of_any_scale_give_quotes_between_0_and_1(scores: tuple[float, float]) -> None:
    passages = [Passage(str(at), f"Ada planted tree number {at}.", score) for at, score in enumerate(scores)]
    assert all(0 <= quote.score <= 1 for quote in best_sentences("Which tree did Ada plant?", passages, 2))


def test_nothing_in_nothing_out() -> None:
    assert best_sentences("What?", [], 3) == []
    assert best_sentences("", [Passage("p", "", 1.0)], 3) == []
    assert len(best_sentences("", [TEA], 3)) == 1
