"""Questions about several, or about somebody described: "when do Ann and I meet?", "what does Kyle's wife do?". Pure.

A question that names several is asked once for each. Of one that describes somebody, one statement tells the name, and
another answers: the first is found by the whole question, the second by the name and the words that the first lacks.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from vault.lexicon.concepts import base_forms
from vault.lexicon.entities import find_entities
from vault.lexicon.segments import pieces
from vault.lexicon.tokens import SPACED, content_terms, terms

MOST_LINKS, MOST_PARTS = 4, 4
BRIDGES = 3  # passages that may name what is described
LEAST_SHARE = 0.2  # of the question's words that such a passage has
LONGEST_QUESTION = 400  # characters
_DESCRIBES = re.compile(
    r"\b(?:the|my|our|that) (?:\w+ ){0,2}?\w+ (?:who|that|whose|whom|i|we)\b"
    r"|\b(?:somebody|someone|anybody|those|people|one) (?:who|that|whose|i|we)\b"
    r"|\b[^\W\d]\w*['’]s? (?!name\b)\w+"
    r"|\bthe \w+ (?:of|in|on|at|for|from) (?:the |my |our )?[^\W\d]"
    r"|的(?:那|这)?(?:一?[个位家种样])?(?:人|[^\W\d]{1,3}(?=[，,的他她它在住叫做吃喝去来]))|的那[个位]",
    re.IGNORECASE,
)
_KIN = re.compile(
    r"\b(?:wife|husband|partner|girlfriend|boyfriend|mother|mum|mom|father|dad|sister|brother|son|daughter|aunt|uncle"
    r"|cousin|niece|nephew|grandmother|grandfather|grandma|grandpa|neighbou?r|boss|landlord|landlady|roommate|flatmate)\b"
    r"|老公|老婆|丈夫|妻子|女朋友|男朋友|妈妈|我妈|爸爸|我爸|姐姐|我姐|妹妹|我妹|有个妹|哥哥|我哥|弟弟|我弟|儿子|女儿|奶奶|爷爷"
    r"|外婆|外公|表[哥弟姐妹]|堂[哥弟姐妹]|邻居|房东|室友|老板",
    re.IGNORECASE,
)
_NO_PART_OF_KIN = re.compile(r"^(?:我|有个)(?=.)")
_WORD = re.compile(rf"{SPACED}+(?:['’]{SPACED}+)*|[\u4e00-\u9fff]+")
_NAME = r"(?:[Mm]y \w{1,30}(?:['’]s \w{1,30})?|[A-Z]\w{0,30}(?:['’]s \w{1,30})?|\bI\b|\bme\b)"
_RUN = re.compile(rf"\b{_NAME}(?:, {_NAME}){{0,4}},? and {_NAME}\b")
_HAN_NAME = r"(?:[小老阿][\u4e00-\u9fff]|我(?:[爸妈哥姐弟妹]|女儿|儿子|老公|老婆)?|[\u4e00-\u9fff]{2,3})"
_SIDE_BY_SIDE = re.compile(r",? and |, |[、，和跟与]")
_HAN_RUN = re.compile(
    rf"^{_HAN_NAME}(?:、{_HAN_NAME}){{0,4}}[和跟与、]{_HAN_NAME}(?=都|各|分别|谁|是|住|在|做|喜欢|爱|有|会|去|来|多大|几|叫|属)"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_DAYS = rf"{_DAY}(?:, {_DAY}){{0,3}},? and {_DAY}"
_MONTH = r"(?:jan|febr)uary|march|april|may|june|july|august|(?:septem|octo|novem|decem)ber"
_DAY_RUN = re.compile(
    rf"(?P<days>{_DAYS}) (?:of )?(?P<month>{_MONTH})\b|\b(?P<before>{_MONTH}) (?P<after>{_DAYS})\b", re.IGNORECASE
)
_HAN_DAY = r"\d{1,2}[日号]?"
_HAN_DAY_RUN = re.compile(
    rf"(?P<month>\d{{1,2}}月)(?P<days>{_HAN_DAY}(?:[、，]{_HAN_DAY}){{0,3}}[、，和跟与]\d{{1,2}}[日号])"
)


@dataclass(frozen=True, slots=True)
class Link:
    """A passage that names what a question describes. rest: the question about that name."""

    key: str
    name: str = field(repr=False)
    rest: str = field(repr=False)


def split_question(question: str) -> list[str]:
    """Return the question once for each of those that it names together, at most MOST_PARTS; else an empty list."""
    asked = question[:LONGEST_QUESTION]
    run = _RUN.search(asked) or _HAN_RUN.search(asked)
    if run is None:
        return []
    names = dict.fromkeys(_SIDE_BY_SIDE.split(run[0]))
    return [f"{asked[: run.start()]}{name}{asked[run.end() :]}" for name in names][:MOST_PARTS]


def split_days(question: str) -> list[str]:
    """Return the question once for each of the days that it names with one month, as in "2, 3 and 4 May"; else []."""
    asked = question[:LONGEST_QUESTION]
    if run := _DAY_RUN.search(asked):
        month = run["month"] or run["before"]
        days = [f"{day} {month}" for day in _SIDE_BY_SIDE.split(run["days"] or run["after"])]
    elif run := _HAN_DAY_RUN.search(asked):
        days = [f"{run['month']}{day.rstrip('日号')}日" for day in _SIDE_BY_SIDE.split(run["days"])]
    else:
        return []
    return [f"{asked[: run.start()]}{day}{asked[run.end() :]}" for day in days][:MOST_PARTS]


def find_links(question: str, passages: Sequence[tuple[str, str]]) -> list[Link]:
    """Return the links of a question, of the best passages first; empty if it describes nothing.

    passages: the key and the text of each search result, best first.
    """
    asked = question[:LONGEST_QUESTION]
    if _DESCRIBES.search(asked) is None:
        return []
    wanted = base_forms(content_terms(asked))
    links: list[Link] = []
    for key, text in passages[:BRIDGES]:
        held = base_forms(terms(text))
        shared = wanted & held
        if len(shared) >= LEAST_SHARE * len(wanted) and shared != wanted:
            rest = _remove_words(asked, held, text)
            names = [name for name in _find_names(text) if name.casefold() not in asked.casefold()]
            links += [Link(key, name, f"{rest} {name}") for name in names]
    return links[:MOST_LINKS]


def _find_names(text: str) -> list[str]:
    kin = [_NO_PART_OF_KIN.sub("", found) for found in _KIN.findall(text)]
    return list(dict.fromkeys([*find_entities(text), *kin]))


def _remove_words(question: str, held: frozenset[str], text: str) -> str:
    """Return the words of a question that a passage does not have."""
    words = [word for run in _WORD.findall(question) for word in ([run] if run.isascii() else pieces(run))]
    return " ".join(
        word for word in words if not base_forms(terms(word)) & held and (word.isascii() or word not in text)
    )
