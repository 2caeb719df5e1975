"""Corrections of a value: "no, I said Thursday", 说错了，四点, "I got it wrong, it's the 9th". Pure.

They name no subject, so that the statement which they correct is the last one with a value of that kind.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from vault.lexicon.dates import find_named_times, fold_signs
from vault.reader.rules.sentences import sentences

LONGEST_CORRECTION = 60  # characters of a sentence that is nothing but a correction
LONGEST_MESSAGE = 200  # characters of a message that has one
_HOURS = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_MONTHS = (
    "jan(?:uary)?|feb(?:ruary)?|march|april|may|june|july|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?"
)
_HAN_NUMBER = "[零〇一二三四五六七八九十两百千万0-9]"
_HAN_PART = "早上|上午|中午|下午|晚上|凌晨|傍晚"
# The kinds of values, the narrowest first.
_VALUES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b\d{{1,2}}[:.]\d{{2}}(?: ?[ap]\.?m\b\.?)?|\b\d{{1,2}} ?[ap]\.?m\b\.?|\b(?:{_HOURS}|\d{{1,2}}) o'clock"
        rf"|\bhalf past (?:{_HOURS}|\d{{1,2}})"
        rf"|(?:{_HAN_PART})?{_HAN_NUMBER}{{1,3}}点(?:半|钟|一刻|{_HAN_NUMBER}{{1,3}}分?)?",
        r"\b(?:next |this )?(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|(?:下下?|这|上|本)?(?:周|星期"
        r"|礼拜)[一二三四五六日天]",
        rf"\b(?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?: of)? (?:{_MONTHS})\b|\b(?:{_MONTHS}) \d{{1,2}}(?:st|nd|rd"
        rf"|th)?\b|\bthe \d{{1,2}}(?:st|nd|rd|th)\b"
        rf"|(?:{_HAN_NUMBER}{{1,3}}月)?{_HAN_NUMBER}{{1,3}}[日号](?:{_HAN_PART})?",
        r"[$\u20ac\u00a3]?\b\d[\d,]{0,15}(?:\.\d{1,6})?\b",
        rf"(?<!{_HAN_NUMBER}){_HAN_NUMBER}{{1,12}}(?!{_HAN_NUMBER})(?=[块元个只岁斤公米层楼号年月天]|\W|$)",
    )
)
NUMBERS = 3  # the first kind of a mere number, which "it is" may tell of anything
LONGEST_LEAD = 24  # characters before a value that may name it as the right one
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
_ENDS_WITH_PART = re.compile(rf"(?:{_HAN_PART})$")
# Words by which a speaker admits an error, and those before the value that is right.
_ERRED = re.compile(
    r"\b(?:my mistake|my bad|(?:got|had) (?:it|that|the \w+) wrong|i was wrong|mixed (?:it|that|them|up)|misread"
    r"|misremembered|swapped the (?:digits|numbers|dates|days|names))\b"
    r"|(?<!没)(?<!没有)[记看搞弄说写听算][岔错混](?![话误])|[记看搞弄]反了|[说写记算][早晚多少]了|[搞弄记]不清",
    re.IGNORECASE,
)
_SAME_PLACE = re.compile(r"\bit's [^,.]{1,20}, same (?:time|place)\b", re.IGNORECASE)
_RIGHT = re.compile(  # at the beginning of a clause: with a subject of its own it would be about something else
    r"(?:^|[,.;:!?\u2014\uff0c\u3002\uff1b\uff1a\uff01\uff1f-]\s{0,2}(?:(?:and|but|so|no),? )?)"
    r"(?:(?:it(?:'s| is| was| should be)|that(?:'s| is)|should be|actually|i meant)(?: actually)?(?: on| at)? "
    r"|(?:应该|其实|原来)?(?:是|改到|改成|改为))$",
    re.IGNORECASE,
)
_BEFORE_TIME = re.compile(r"^(?:(?:on|at|the|a) )*", re.IGNORECASE)
_BARE = re.compile(r"^\W*(?:on|at|it(?:'s| is| was)?|不|哦|啊|是|应该)\W*$", re.IGNORECASE)


@dataclass(frozen=True)
class Correction:
    """A value that takes the place of another one of its kind."""

    kind: int
    value: str


def read_correction(text: str) -> Correction | None:
    """Return the value that a text announces as the right one: its first sentence names nothing else, or it admits an
    error and names one value as the right one.
    """
    said = text.strip().replace("\u2019", "'")
    if len(said) > LONGEST_MESSAGE or said.endswith(("?", "\uff1f")):
        return None
    first = next(iter(sentences(said)), "")
    is_corrected = _ERRED.search(said) or _SAME_PLACE.search(said)
    return _read_announced(first) or (_read_admitted(said) if is_corrected else None)


def _read_announced(said: str) -> Correction | None:
    lead = _ANNOUNCED.match(said) if len(said) <= LONGEST_CORRECTION else None
    if lead is None or _BARE.match(lead[0]):
        return None
    for kind, pattern in enumerate(_VALUES):
        found = pattern.match(said, lead.end())
        if found and _DENIED.match(said[found.end() :]):
            return Correction(kind, found[0].strip())
    return None


def _read_admitted(said: str) -> Correction | None:
    found = [
        Correction(kind, value[0].strip())
        for kind, pattern in enumerate(_VALUES)
        for value in pattern.finditer(said)
        if _RIGHT.search(said[max(0, value.start() - LONGEST_LEAD) : value.start()])
    ]
    return found[0] if found and found[0].kind < NUMBERS else None


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
    part = _ENDS_WITH_PART.search(old[0])
    value = correction.value if part is None or _ENDS_WITH_PART.search(correction.value) else correction.value + part[0]
    return at, f"{said[at][: old.start()]}{value}{said[at][old.end() :]}"


def begins_with_time(text: str) -> bool:
    """Return whether a text begins with a clock time, a day, a month or a number."""
    start = text[:LONGEST_LEAD].strip()
    bare = _BEFORE_TIME.sub("", start)
    if any(pattern.match(part) for pattern in _VALUES for part in (start, bare)):
        return True
    found = next(find_named_times(fold_signs(bare)), None)
    return found is not None and found.begin == 0


def admits_error(text: str) -> bool:
    """Return whether the speaker of a text admits that something was told wrong before."""
    return len(text) <= LONGEST_MESSAGE and _ERRED.search(text) is not None


def find_changed_value(text: str, told: Sequence[str], *, numbers: bool = True) -> int | None:
    """Return the place of the only earlier text with another value of a kind of which `text` has one value.

    numbers: also other values than times.
    """
    for pattern in _VALUES if numbers else _VALUES[:NUMBERS]:
        values = set(pattern.findall(text))
        if len(values) == 1:
            (value,) = values
            having = [
                at
                for at, other in enumerate(told)
                if any(not old.endswith(value) and not value.endswith(old) for old in pattern.findall(other))
            ]
            return having[0] if len(having) == 1 else None
    return None


def remove_values(text: str) -> str:
    """Return `text` without clock times, days and numbers, in which a correction differs from what it corrects."""
    for pattern in _VALUES:
        text = pattern.sub(" ", text)
    return text
