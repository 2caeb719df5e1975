"""Short corrections of what was said before: "no, I said Thursday", 说错了，四点. Pure.

They name a value and nothing else, so that the statement which they correct is the last one with a value of that kind.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

LONGEST_CORRECTION = 60  # characters
_HOURS = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_MONTHS = (
    "jan(?:uary)?|feb(?:ruary)?|march|april|may|june|july|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?"
)
_HAN_NUMBER = "[零〇一二三四五六七八九十两百千万0-9]"
# The kinds of values, the narrowest first.
_VALUES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b\d{{1,2}}[:.]\d{{2}}(?: ?[ap]\.?m\b\.?)?|\b\d{{1,2}} ?[ap]\.?m\b\.?|\b(?:{_HOURS}|\d{{1,2}}) o'clock"
        rf"|\bhalf past (?:{_HOURS}|\d{{1,2}})"
        rf"|(?:早上|上午|中午|下午|晚上|凌晨|傍晚)?{_HAN_NUMBER}{{1,3}}点(?:半|钟|一刻|{_HAN_NUMBER}{{1,3}}分?)?",
        r"\b(?:next |this )?(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|(?:下下?|这|上|本)?(?:周|星期"
        r"|礼拜)[一二三四五六日天]",
        rf"\b(?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?: of)? (?:{_MONTHS})\b|\b(?:{_MONTHS}) \d{{1,2}}(?:st|nd|rd"
        rf"|th)?\b|\bthe \d{{1,2}}(?:st|nd|rd|th)\b"
        rf"|{_HAN_NUMBER}{{1,3}}月{_HAN_NUMBER}{{1,3}}[日号]|{_HAN_NUMBER}{{1,3}}[日号]",
        r"[$\u20ac\u00a3]?\b\d[\d,]{0,15}(?:\.\d{1,6})?\b",
        rf"(?<!{_HAN_NUMBER}){_HAN_NUMBER}{{1,12}}(?!{_HAN_NUMBER})(?=[块元个只岁斤公米层楼号年月天]|\W|$)",
    )
)
_ANNOUNCED = re.compile(
    r"^\W*(?:(?:no|nope|wait|sorry|oops|actually|correction|hang on|i was wrong|i misspoke|i got (?:it"
    r"|that) wrong|my mistake|scratch that"
    r"|i (?:meant|mean|said)|make (?:that|it)|it(?:'s| is| was| should be)|that should be|rather|not that|on"
    r"|at|to say)\b[\s,:;.!\u2014-]{0,4}){1,5}"
    r"|^\W*(?:(?:不对|不是|不|哦|啊|抱歉|不好意思|对不起|更正|纠正一下|应该|改成|其实|(?:我)?(?:刚才|之前)?(?:说错|记错|搞错|弄错|写错)了?|我(?:说|指)?的?是|是|我说)[\uff0c,:\uff1a\u3002.\s]{0,3}){1,5}",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"^[\s,]{0,3}(?:instead|then|sorry|thanks|please|actually|on|not\b.{1,20}|才对|才是|[吧啊哦呢的])*\W*$|^[\uff0c,]?不是.{1,10}$",
    re.IGNORECASE,
)
_BARE = re.compile(r"^\W*(?:on|at|it(?:'s| is| was)?|不|哦|啊|是|应该)\W*$", re.IGNORECASE)


@dataclass(frozen=True)
class Correction:
    """A value that takes the place of another one of its kind."""

    kind: int
    value: str


def read_correction(text: str) -> Correction | None:
    """Return the value that a text announces as the right one, if it names nothing else."""
    said = text.strip()
    lead = _ANNOUNCED.match(said) if len(said) <= LONGEST_CORRECTION and not said.endswith(("?", "\uff1f")) else None
    if lead is None or _BARE.match(lead[0]):
        return None
    for kind, pattern in enumerate(_VALUES):
        found = pattern.match(said, lead.end())
        if found and _DENIED.match(said[found.end() :]):
            return Correction(kind, found[0].strip())
    return None


def apply_correction(correction: Correction, said: Sequence[str]) -> tuple[int, str] | None:
    """Return the place of the statement that is corrected, and its text with the new value; None if it is not certain.

    said: what was stated before, the latest first; of the same turn, two statements with such a value are not certain.
    """
    pattern = _VALUES[correction.kind]
    having = [(at, found) for at, text in enumerate(said) if (found := list(pattern.finditer(text)))]
    if len(having) != 1 or len(having[0][1]) != 1:
        return None
    at, (old,) = having[0]
    if old[0].casefold() == correction.value.casefold():
        return None
    return at, f"{said[at][: old.start()]}{correction.value}{said[at][old.end() :]}"


def remove_values(text: str) -> str:
    """Return `text` without clock times, days and numbers, in which a correction differs from what it corrects."""
    for pattern in _VALUES:
        text = pattern.sub(" ", text)
    return text
