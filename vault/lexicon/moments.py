"""Time in words, in English and Chinese: whether a text names one, and whether a question asks for one. Pure."""

import re

_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_NAMED = re.compile(
    r"\b(?:yesterday|today|tomorrow|tonight|last|next|ago|since|week(?:end)?|month|year"
    rf"|(?:{_MONTHS})[a-z]*|(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:19|20)\d\d)\b"
    r"|昨[天晚日]|今[天晚日年早]|明[天晚日年早]|前天|后天|去年|前年|上个?[周月]|下个?[周月]|星期|周[一二三四五六日天末]|\d+[年月日号]|[一二三四五六七八九十]+月",
    re.IGNORECASE,
)
_ASKED = re.compile(
    r"\bwhen\b|\b(?:what|which) (?:time|day|date|month|year)\b|\bhow long\b|\bsince when\b"
    r"|什[么麼][时時]候|何时|哪[天年月]|几[点月号]|多久",
    re.IGNORECASE,
)


def mentions_time(text: str) -> bool:
    """Whether `text` names a day, a month, a year or a time relative to now."""
    return _NAMED.search(text) is not None


def asks_for_time(question: str) -> bool:
    """Whether `question` wants to know when, or for how long."""
    return _ASKED.search(question) is not None
