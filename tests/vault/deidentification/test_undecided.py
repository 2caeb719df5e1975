"""Undecided texts: all that no rule can decide, in every script and however many names there are."""

from time import process_time

from tests.harness.cases import each_case
from vault.deidentification.deidentifier import find_undecided

OTHER_SCRIPTS: tuple[tuple[str, list[str]], ...] = (
    ("Иван Петров живёт на улице Ленина, дом 5.", ["Иван Петров живёт на улице Ленина", "дом"]),
    ("Γιώργος Παπαδόπουλος met [person].", ["Γιώργος Παπαδόπουλος"]),
    ("김철수 환자는 서울시에 산다", ["김철수 환자는 서울시에 산다"]),
    ("山田太郎さん", ["山田太郎さん"]),
    ("今日は[person]と鈴木さん。", ["今日は", "と鈴木さん"]),
    ("أحمد الفقيه", ["أحمد الفقيه"]),
    ("דוד כהן", ["דוד כהן"]),
    ("สมชาย ใจดี", ["สมชาย ใจดี"]),
    ("राहुल शर्मा।", ["राहुल शर्मा"]),
    ("5 μg at 20 ℃, x², ½, naïve", []),
    ("他很高兴。", []),
)


@each_case("case", OTHER_SCRIPTS)
def test_words_of_scripts_without_rules_are_undecided(case: tuple[str, list[str]]) -> None:
    text, expected = case
    found = list(find_undecided(text))
    assert [each.text for each in found] == expected
    assert all(text[each.start : each.end] == each.text for each in found)


def test_each_name_of_a_long_sentence_is_undecided() -> None:
    names = [f"Z{chr(97 + at // 26)}{chr(97 + at % 26)}x" for at in range(60)]
    assert [each.text for each in find_undecided("they saw " + ", ".join(names))] == names


def test_name_of_an_unusual_spelling_is_undecided() -> None:
    text = "they met Weiß, O’Brien and ﬁona Ziﬀer"
    left = " ".join(each.text for each in find_undecided(text))
    assert all(name in left for name in ("Weiß", "O’Brien", "Ziﬀer"))


@each_case("text", ["昨天张伟来了。", "家里有张伟。", "张伟迟到了。", "看见了张伟迟到。"])
def test_chinese_name_beside_small_words_is_undecided(text: str) -> None:
    assert any(each.text.startswith("张伟") for each in find_undecided(text))


@each_case("text", ["今天高兴。", "昨天马上就去。", "她也许多次来。"])
def test_words_with_a_surname_in_them_are_decided(text: str) -> None:
    assert list(find_undecided(text)) == []


def test_time_is_linear() -> None:
    started = process_time()
    assert list(find_undecided("[person]Иван" * 20_000))
    assert process_time() - started < 3
