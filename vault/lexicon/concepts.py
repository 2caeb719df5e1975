"""Concepts: sets of words with one meaning, as people use them in questions and in the texts that answer these.

Each concept has a pattern for questions and one for texts about it, in English and Chinese. Pure; every pattern is
linear in its text.
"""

import re
from dataclasses import dataclass

from vault.lexicon.tokens import terms

_IRREGULAR = """
go goes went gone|buy bought|see saw seen|eat ate eaten|drink drank drunk|give gave given|take took taken|make made
|get got gotten|write wrote written|read|teach taught|think thought|find found|lose lost|win won|run ran|swim swam swum
|drive drove driven|ride rode ridden|break broke broken|fall fell fallen|begin began begun|grow grew grown|meet met
|leave left|sell sold|tell told|say said|speak spoke spoken|sing sang sung|sleep slept|spend spent|build built|send sent
|steal stole stolen|choose chose chosen|wear wore worn|fly flew flown|come came|become became|bring brought|catch caught
|fight fought|feel felt|hold held|keep kept|know knew known|lend lent|pay paid|quit|swear swore|throw threw thrown
|wake woke woken|forget forgot forgotten|bake baked|elect elected|child children|man men|woman women|foot feet
"""


@dataclass(frozen=True)
class Concept:
    """Patterns of a concept. asked: its words in a question; told: its words in a text."""

    name: str
    asked: re.Pattern[str]
    told: re.Pattern[str]


def _concept(name: str, asked: str, told: str = "") -> Concept:
    return Concept(name, re.compile(asked), re.compile(f"{asked}|{told}" if told else asked))


CONCEPTS = (
    _concept(
        "home", r"\bliv(?:e|es|ed)\b|\breside|住", r"\bmoved (?:in|to|into)\b|\b(?:flat|apartment|house)\b|搬|新房|公寓"
    ),
    _concept(
        "work",
        r"\b(?:for a living|for work|job|profession|occupation|works?|worked|working|employed)\b|做什么(?:工作"
        r"|的)|职业|工作|上班",
        r"\b(?:engineer|teach\w*|doctor|nurse|lawyer|designer|developer|manager|radiologist|\w{3,}ist|officer"
        r"|analyst)\b"
        r"|[\u4e00-\u9fff](?:医生|老师|工程师|分析师|律师|护士|司机|会计)|教",
    ),
    _concept("home move", r"\bmov(?:e|ed|ing)\b|搬"),
    _concept(
        "marriage", r"\b(?:marry|marries|married|wedding|wife|husband|spouse)\b|结婚|婚礼|嫁|娶|妻子|丈夫|老婆|老公"
    ),
    _concept("purchase", r"\b(?:buy|buys|bought|purchased?)\b|买", r"\bgot (?:a|an|the|my)\b|换了|花"),
    _concept(
        "price",
        r"\b(?:cost|costs|price|pay|pays|paid|spend|worth|lose|lost)\b|多少钱|花了|价格|损失",
        r"[$€£]|\d ?(?:euro|dollar|pound|usd|eur)|[块元钱万]",
    ),
    _concept("pay", r"\b(?:earn\w*|salary|wage|income)\b|工资|薪水|收入"),
    _concept("birthday", r"\bbirthday\b|生日", r"\bborn\b|出生|生于|\bturned \w+\b|满[一二三四五六七八九十\d]+岁"),
    _concept("birth", r"\b(?:born|birth)\b|出生", r"\bhad a baby\b|\bgave birth\b|生了"),
    _concept(
        "age",
        r"\bhow old\b|\bage\b|多大(?:年纪|岁数)?|几岁|年龄",
        r"\bborn\b|出生|生于|\b(?:is|am|are) \d{1,2}\b|\byears? old\b|\bturned \w+\b|[一二三四五六七八九十\d]岁",
    ),
    _concept(
        "origin",
        r"\bfrom$|\bhometown\b|哪[里儿]人|老家",
        r"\b(?:is|am|are|'[ms]|comes?|came) (?:originally )?from\b|\bborn in\b"
        r"|来自|[\u4e00-\u9fff]{2}人(?![\u4e00-\u9fff])",
    ),
    _concept(
        "visit", r"\bbeen to\b|\bvisit\w*|\btravel+ed to\b|[去到]过", r"\b(?:went|trip|flew|drove) to\b|去了|玩了"
    ),
    _concept("children", r"\b(?:child|children|kids?|sons?|daughters?)\b|孩子|儿子|女儿"),
    _concept("siblings", r"\b(?:siblings?|brothers?|sisters?)\b|姐姐|妹妹|哥哥|弟弟|兄弟姐妹"),
    _concept("mother", r"\b(?:mother|mum|mom)\b|妈妈|母亲|我妈"),
    _concept("father", r"\b(?:father|dad)\b|爸爸|父亲|我爸"),
    _concept("liking", r"\b(?:favou?rites?|likes?|loves?|enjoys?|prefers?)\b|最?喜欢|最爱|爱好"),
    _concept("dislike", r"\b(?:dislikes?|hates?|don't like|doesn't like|can't stand)\b|不喜欢|讨厌"),
    _concept(
        "goal",
        r"\b(?:goals?|aims?|plans?|wants?|ambition|resolution)\b|目标|打算|计划|想要",
        r"\b(?:want to|thinking (?:of|about))\b|想",
    ),
    _concept(
        "food", r"\b(?:dish|dishes|cook|meal|food)\b|菜|做饭|吃的", r"\b(?:soup|cake|bread|pizza|pasta)\b|饭|汤|面"
    ),
    _concept(
        "animal",
        r"\banimals?\b|动物",
        r"\b(?:squirrel|dog|cat|bird|fox|horse|rabbit|heron|otter|deer|whale)s?\b|松鼠|狗|猫|鸟|兔|鹿|鱼",
    ),
    _concept("pet", r"\bpets?\b|宠物", r"\b(?:dog|cat|beagle|rabbit|hamster|puppy|kitten)s?\b|狗|猫|犬"),
    _concept("dog", r"\b(?:dogs?|puppy)\b|狗", r"\b(?:beagle|terrier|poodle|labrador|greyhound)s?\b|犬"),
    _concept("cat", r"\b(?:cats?|kitten)\b|猫"),
    _concept("computer", r"\b(?:computer|laptop|pc)\b|电脑|笔记本", r"\b(?:thinkpad|macbook)\b"),
    _concept("phone", r"\bphone\b|手机", r"\b(?:iphone|android)\b|华为|小米|苹果"),
    _concept("car", r"\b(?:cars?|vehicle)\b|(?<![骑火停自行])车(?![站位])"),
    _concept("fear", r"\b(?:afraid|scared|fears?|frightened)\b|怕"),
    _concept("injury", r"\b(?:hurt|injur\w+|broke|broken|break|sprain\w*)\b|受伤|摔断|扭伤|断|坏"),
    _concept("start", r"\b(?:start\w*|begin|began|begun|open|opens|opened|launch\w*)\b|开始|开放|开的|开了"),
    _concept("stop", r"\b(?:quit|stop|stopped|gave up|give up)\b|戒|辞"),
    _concept("win", r"\b(?:win|won|prize|award)\b|奖|赢"),
    _concept("holiday", r"\b(?:holidays?|vacation|trip)\b|度假|假期|旅行|旅游"),
    _concept("illness", r"\b(?:medicine|pills?|drug)\b|药"),
    _concept("publication", r"\bpublish\w*\b|出版"),
    _concept("rent", r"\brent\b|房租"),
    _concept("decision", r"\bdecid\w+\b|\bdecision\b|\bagreed\b|决定|商定|说好|约定"),
    _concept("pupils", r"\b(?:pupils?|students?|class)\b|学生|班上", r"\bteenagers?\b"),
    _concept("learning", r"\b(?:study|studied|learn\w*|university|college)\b|学习|大学|上学", r"学"),
    _concept("boss", r"\b(?:boss|supervisor)\b|老板|领导|主任"),
    _concept(
        "happening",
        r"\bwhat (?:happened|did .{1,20} do) to\b|怎么了|怎么样了",
        r"\b(?:sold|lost|broke|broken|sprained|stolen|died|ran away|hurt|burnt)\b|卖|丢|坏|摔|扭|断|病|偷",
    ),
)
_FORMS = {
    term: group.split()[0]
    for group in _IRREGULAR.replace("\n", " ").split("|")
    for word in group.split()
    for term in terms(word)
}


def base_forms(found: list[str]) -> frozenset[str]:
    """Return index terms with irregular forms in their base form: `went` as `go`."""
    return frozenset(_FORMS.get(term, term) for term in found)


def find_concepts(question: str) -> tuple[tuple[Concept, ...], str]:
    """Return the concepts of a case-folded question, and the question with blanks for their words."""
    asked = tuple(concept for concept in CONCEPTS if concept.asked.search(question))
    rest = question
    for concept in asked:
        rest = concept.asked.sub(" ", rest)
    return asked, rest
