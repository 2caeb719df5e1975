"""Names of people in every form, and the words that are none."""

from tests.harness.cases import each_case
from vault.deidentification.learning import stated_names
from vault.deidentification.names import NameFinder, make_name_forms
from vault.deidentification.relations import find_relations

REPLACED = (
    ("Hannah Marie Weiss", "Ms Weiss and H. Weiss saw Weiss, Hannah.", ["Ms Weiss", "H. Weiss", "Weiss, Hannah"]),
    (
        "Hannah Weiss",
        "HANNAH's and Hännah’s or hannah; H.W. or hweiss88",
        ["HANNAH", "Hännah", "hannah", "H.W.", "hweiss88"],
    ),
    ("Robert Brown", "Bob likes brown bread; Brown likes Bobby.", ["Bob", "Brown", "Bobby"]),
    ("王小明", "王先生、小明和阿明，王小明说老王来了。", ["王先生", "小明", "阿明", "王小明", "老王"]),
    ("汉娜·魏斯", "汉娜来了，魏斯走了。", ["汉娜", "魏斯"]),
    ("customer-anna", "The customer met Anna.", ["Anna"]),
    ("patient-17", "It was patient-17, no patient-171.", ["patient-17"]),
    ("Иван Петров", "Петров и Иван Петров.", ["Петров", "Иван Петров"]),
    ("Tim", "Sometimes Tim has a good time at times.", ["Tim"]),
)
STATED = (
    ("Her full name is Hannah Weiss.", ["Hannah Weiss"]),
    ("Everybody calls me Mimi. I'm Happy.", ["Mimi"]),
    ("大家都叫我团团。", ["团团"]),
    ("我叫张曼婷，很高兴认识你。", ["张曼婷"]),
)
RELATIONS: tuple[tuple[str, list[tuple[str, str]]], ...] = (
    ("her brother Tom drove", [("her brother Tom", "Tom")]),
    ("My mom is here", [("My mom", "")]),
    ("她的哥哥王强喜欢茶", [("她的哥哥王强", "王强")]),
    ("他弟弟叫小刚，很高", [("他弟弟叫小刚", "小刚")]),
    ("他的妻子李秀英每天陪他。", [("他的妻子李秀英", "李秀英")]),
    ("她的丈夫王学兵每天陪她。", [("她的丈夫王学兵", "王学兵")]),
    ("他妈妈高兴地笑", [("他妈妈", "")]),
    ("Uncle Bob ate", [("Uncle Bob", "Bob")]),
    ("The brother of nobody", []),
)


@each_case("case", REPLACED)
def test_forms_of_a_name_are_replaced_and_other_words_stay(case: tuple[str, str, list[str]]) -> None:
    name, text, expected = case
    spans = NameFinder(make_name_forms([name])).find(text)
    assert [part for span in spans for part in [text[span.start : span.end]]] == expected


@each_case("case", STATED)
def test_introduction_states_a_name(case: tuple[str, list[str]]) -> None:
    text, expected = case
    assert list(stated_names(text)) == expected


@each_case("case", RELATIONS)
def test_relation_is_read_with_its_name(case: tuple[str, list[tuple[str, str]]]) -> None:
    text, expected = case
    assert [(text[span.start : span.end], name) for span, name in find_relations(text)] == expected
