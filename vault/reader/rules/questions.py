"""Analysis of a question: its kind, its person, and the words that an answer must contain. Pure."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from vault.lexicon.concepts import Concept, base_forms, find_concepts
from vault.lexicon.entities import entities
from vault.lexicon.labels import find_word
from vault.lexicon.temporal_expressions import remove_times
from vault.lexicon.tokens import content_terms, language_of
from vault.lexicon.words import DULL_WORDS
from vault.reader.rules.joins import split_days


class QuestionKind(StrEnum):
    WHEN = "when"
    WHERE = "where"
    WHO = "who"
    COUNT = "count"
    WHY = "why"
    YES_NO = "yes_no"
    TOPICS = "topics"
    WHAT = "what"


LONGEST_QUESTION = 4_000  # characters that are read
LIGHT_WEIGHT = 0.25  # of a word that says little of what is asked for
_KINDS = (
    (
        QuestionKind.TOPICS,
        re.compile(
            r"\bwhat (?:did|have) (?:we|i|you) (?:talk|discuss|chat|speak|say|do)\w*\b.{0,40}\b(?:on|last"
            r"|yesterday|in|this)\b"
            r"|(?:聊|谈|说|讨论|做)了?(?:些)?什么"
        ),
    ),
    (
        QuestionKind.WHEN,
        re.compile(
            r"\bwhen\b|\bwh(?:at|ich) (?:time|day|date|year|month)\b|什[么麼][时時]候|何时|[哪几](?:一?天|年"
            r"|个?月|点|号)"
        ),
    ),
    (
        QuestionKind.COUNT,
        re.compile(r"\bhow (?:many|much|old|long|often|far|tall|high)\b|\brating\b|多少|多久|多大|多长|几(?!乎|天前)"),
    ),
    (QuestionKind.WHERE, re.compile(r"\bwhere\b|哪[里裡儿](?!人)|何处|什么地方")),
    (QuestionKind.WHY, re.compile(r"\bwhy\b|为什么|為什麼|为何|怎么会")),
    (QuestionKind.WHO, re.compile(r"\bwho(?:m|se)?\b|谁|誰|哪位")),
    (
        QuestionKind.YES_NO,
        re.compile(
            r"^(?:and |but |so |well )*(?:do|does|did|is|are|was|were|am|have|has|had|can|could|will|would"
            r"|should)(?:n't)?\b"
            r"|,? (?:right|correct|isn't it|don't i|true|is that right)\?*$|吗[？?]*$|对[吧吗]|是不是|有没有"
            r"|是吧|会不会|能不能"
        ),
    ),
)
_LIST = re.compile(
    r"\b(?:which|what)(?: \w+){0,2}? (?:\w{2,}(?<!s)s|people|children|food)"
    r"(?= (?:do|did|have|are|were|can|could|must|should|will|would|i|we|they|to|or|and|that)\b)"
    r"|\bwh(?:o|at|ich) (?:all )?are (?:all )?(?:the|my|our|their|his|her)\b.{0,40}?\w(?<!s)s\b"
    r"|\bwho (?:of|among|all)\b"
    r"|\b(?:list|name|count)(?: me)? (?:all|my|our|the|every|each)\b|\ball (?:of )?(?:the|my|our|their)\b"
    r"|\bhow many (?!(?:years?|months?|weeks?|days?|hours?|minutes?|times?|of)\b)"
    r"|哪(?:些|几(?!天|年|号|点|个月)|两|三)|都(?:有|是|叫|去过?|会|学|养|吃|用|喜欢)(?:过|了)?(?:些)?(?:谁|什么|哪)|谁和谁|分别"
    r"|(?:列出|说说|数数).{0,4}(?:所有|全部|我)|(?:所有|全部)的?|(?:几|多少)(?:个(?!月|小时)|位|只|种|家|门|本)"
)
# The kind of thing that is asked for, which an answer seldom names: "I speak Dutch" has no word for languages.
_NOUN = r"(?!(?:do|does|did|have|has|had|is|are|am|was|were|can|could|will|would|should|i|we|you|my|our)\b)\w+"
_ASKED_KIND = re.compile(
    rf"\b(?:which|what)(?: {_NOUN})? (?P<en>{_NOUN})"
    r"(?= (?:do|does|did|have|has|had|can|could|will|would|should|i|we)\b)"
    r"|哪(?:些|几[种门个家只本部国]?|[种门家只本部])(?P<zh>[\u4e00-\u9fff]{1,4})$"
)
_OF_A_DAY = re.compile(r"\b(?:what|anything|plans?|free|busy|calendar|schedule)\b|什么|啥|安排|计划|日程|有空|有事")
_PLANS = re.compile(
    r"\b(?:what(?:'s)?|anything|do|does|did|is|are|am|was|were|have|has|had|will|be|going|on|planned|plans?|scheduled?"
    r"|calendar|appointments?|events?|happen(?:s|ing|ed)?|free|busy|there|i|we|my|our|me|us|to|for|in|the|up|doing|at|of|any)\b"
    r"|什么|有[空事]?|啥|安排|计划|日程|事情?|要|做|干|我们?|是|吗|呢|的|在|忙|空|哪些|活动|这天|那天"
)
_FIRST_PERSON = re.compile(r"\b(?:i|me|my|mine|we|our|us|i'm|i've|am)\b|[我咱]")
# After marks at the end were removed: a search for marks up to an end would begin anew at each of them.
_TAG = re.compile(r"(?:,? ?\b(?:right|correct|isn't it|don't i|true|is that right|ok)|[，,]?(?:对[吧吗]|是吧|吗|呢))$")
_PRONOUNS = tuple("我你您咱")  # at the beginning of what looks like a name
_PARTICLES = re.compile("[的了呢]|[我你您咱]们?|以前|之前|从前|原来|曾经")
_LIGHT_WORDS = (
    "待 呆 去 要 办 人 来 是 会 多 在 do did happen use used have had go make made get name call type kind thing work "
    "somebody someone anything else one old many much long now still before previously formerly"
)
_LIGHT = base_forms([*_LIGHT_WORDS.split(), *sorted(DULL_WORDS)])


@dataclass(frozen=True)
class QuestionParts:
    """The parts of a question. terms: base forms of index terms with their weights; concepts: of words that name one;
    names: of people or things.
    """

    text: str
    kind: QuestionKind
    terms: dict[str, float]
    concepts: tuple[Concept, ...]
    names: tuple[str, ...]
    about_asker: bool
    is_english: bool
    is_list: bool = False  # it asks for all of several


def asks_for_topics(question: str) -> bool:
    """Return whether a question asks about the topics of a time."""
    return question_parts(question).kind is QuestionKind.TOPICS


def asks_for_list(question: str) -> bool:
    """Return whether a question asks for all of several: "which languages do I speak?", 我会哪些语言？"""
    return _LIST.search(_fold_question(question)) is not None or bool(split_days(question))


def speaks_of_self(text: str) -> bool:
    """Return whether `text` says something about its writer."""
    return _FIRST_PERSON.search(text.casefold()) is not None


def question_parts(question: str, speakers: Collection[str] = ()) -> QuestionParts:
    """Return the parts of a question. `speakers`: names of people who spoke, recognised in any capitalisation."""
    question = question[:LONGEST_QUESTION]
    folded = _fold_question(question)
    kind = next((kind for kind, pattern in _KINDS if pattern.search(folded)), QuestionKind.WHAT)
    if _asks_for_day(folded):
        kind = QuestionKind.TOPICS
    bare = _drop_times(_TAG.sub("", _strip_marks(folded)))
    concepts, rest = find_concepts(bare)
    named = [name.removeprefix("的") for name in entities(question) if not name.startswith(_PRONOUNS)]
    named += [
        name
        for name in {speaker.casefold() for speaker in speakers}
        if name and find_word(folded, name) >= 0 and name not in named
    ]
    names = tuple(name for name in named if not any(concept.asked.search(name) for concept in concepts))
    for name in names:
        rest = rest.replace(name, " ")
    rest = _PARTICLES.sub(" ", rest)
    light = _LIGHT | _find_asked_kind(bare)
    weights = {term: LIGHT_WEIGHT if term in light else 1.0 for term in base_forms(content_terms(rest))}
    return QuestionParts(
        text=folded,
        kind=kind,
        terms=weights,
        concepts=concepts,
        names=names,
        about_asker=bool(_FIRST_PERSON.search(folded)),
        is_english=language_of(question) == "en",
        is_list=asks_for_list(question),
    )


def _find_asked_kind(bare: str) -> frozenset[str]:
    """Return the terms of the kind of thing that a question asks for."""
    found = _ASKED_KIND.search(bare)
    return base_forms(content_terms(found["en"] or found["zh"])) if found else frozenset()


def _asks_for_day(folded: str) -> bool:
    """Return whether a question asks for all of a time and nothing else: "what do I have on 3 December?"."""
    rest = remove_times(folded)
    if rest == folded or _OF_A_DAY.search(folded) is None:
        return False
    return not any(map(str.isalnum, _PLANS.sub("", rest)))


def _fold_question(question: str) -> str:
    return " ".join(question[:LONGEST_QUESTION].casefold().replace("\u2019", "'").split())


def _drop_times(text: str) -> str:
    """Return `text` without the times that it names, which limit a search and are no words to be found; all of it if it
    says nothing else."""
    rest = remove_times(text)
    return rest if content_terms(rest) else text


def _strip_marks(text: str) -> str:
    """Remove all characters after the last letter, digit or underscore."""
    end = len(text)
    while end and not (text[end - 1].isalnum() or text[end - 1] == "_"):
        end -= 1
    return text[:end]
