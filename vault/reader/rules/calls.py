"""MemReader for requests: the intent of a text, and follow-up questions completed from earlier questions.

English and Chinese, by patterns only. Pure.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from vault.lexicon.entities import entities
from vault.lexicon.labels import find_word
from vault.lexicon.temporal_expressions import time_ranges_of
from vault.lexicon.tokens import content_terms
from vault.lexicon.words import QUESTION_WORDS
from vault.reader.rules.corrections import read_correction
from vault.reader.rules.extraction import read_statements, states_something
from vault.reader.rules.kinds import is_question
from vault.reader.rules.verbs import read_verb

LONGEST_COMMAND = 300  # characters; what is longer is a text and no command
LONGEST_FOLLOW_UP = 120
OWN = "own"  # the scope of what the speaker said themselves
ALL = "all"
ALL_WORDS = frozenset({"", "me", "myself", "us", "everything", "all", "我", "我们", "我自己", "一切", "所有"})


class Intent(StrEnum):
    ADD = "add"
    SEARCH = "search"
    UPDATE = "update"
    DELETE = "delete"
    SUMMARISE = "summarise"
    CHAT = "chat"
    FUSE = "fuse"
    PROMOTE = "promote"
    ARCHIVE = "archive"
    RESTORE = "restore"
    FREEZE = "freeze"
    UNFREEZE = "unfreeze"
    TAG = "tag"
    ROLLBACK = "rollback"
    AUDIT = "audit"


@dataclass(frozen=True)
class MemoryCall:
    """A request to the memory. query: its topic; rewritten: the text without pronouns; time_range: [from, before), in
    UTC.

    scope: `own` for what the speaker said of themselves, else `all`. anchors: entities of the query. confidence: 0..1.
    is_operation: whether it asks for something to be done with stored memories, which are listed first. argument: of a
    `tag`, the tag; of an `update`, the new text, if it has one. is_statement: the query is something that was said, and
    the memories that say it are meant.
    """

    intent: Intent
    query: str = field(repr=False)
    rewritten: str = field(repr=False)
    entities: tuple[str, ...]
    time_range: tuple[datetime, datetime] | None
    scope: str
    confidence: float
    task: str = ""
    is_operation: bool = False
    argument: str = field(default="", repr=False)
    is_statement: bool = False

    @property
    def anchors(self) -> tuple[str, ...]:
        return tuple(entities(self.query))


_POLITE = r"^\W*(?:(?:please|pls|ok|okay|now|and|so|hey|could you|can you|would you|will you)[, ]+)*"
_FORGET = re.compile(
    rf"{_POLITE}(?:forget|delete|remove|erase|unlearn|stop remembering|(?:don't|do not|no longer) remember)\s+"
    r"(?:(?:everything|all|anything|what|whatever)\s+)?(?:(?:the fact )?(?:that|which)\s+)?"
    r"(?:(?:i|we|you)\s+(?:have\s+|'ve\s+|ever\s+)?(?:said|told you|mentioned|wrote|know|remember"
    r"|stored)\s+(?:that\s+)?)?"
    r"(?P<about>about\s+|regarding\s+)?(?P<what>\S.*?)(?: any ?more)?\W*$"
    r"|^\W*(?:请|請|帮我|麻烦|把)*(?:忘掉|忘记|忘了|删除|删掉|清除|(?:别|不要)再?记(?:得|住|着)?)"
    r"(?:(?:我|你)(?:说过?|告诉过?你|提到过?|讲过|知道|记得|记住)的?|(?:我|你)的)?"
    r"(?:所有|一切)?(?:关于|有关)?(?P<what_han>\S.*?)(?:这件事|(?:的(?:事情?|内容|记忆|一切|话|信息)))?\W*$",
    re.IGNORECASE,
)
# What a request to forget names is something that was said, and no topic.
_SAID = re.compile(
    r"^(?:i|we|he|she|they)(?:'\w{1,2})? \w"
    r"|^(?:[\w'-]+ ){1,5}?(?:is|are|was|were|has|have|had|will|can|lives?|works?|likes?|loves?|hates?|moved"
    r"|owns?|wants?"
    r"|isn't|aren't|doesn't|don't|can't|won't|costs?|starts?)\b \w"
    r"|^我们?(?![的]|自己|家?$)\S{2}|^\S{1,8}?(?:是|叫|住在|喜欢|讨厌|打算|在.{1,12}工作)\S",
    re.IGNORECASE,
)
_SUMMARISE = re.compile(
    r"\bwhat (?:all )?(?:do|did|have) (?:you|we) (?:know|remember|store|stored|have|got)(?: (?:about|on"
    r"|of) (?P<known>\S.*?))?\W*$"
    rf"|{_POLITE}(?:summari[sz]e|sum up|recap|list|show me|tell me)\s+(?:me\s+)?(?:(?:everything|all|what)\s*)?"
    r"(?:that\s+)?(?:(?:you|we)\s+(?:know|remember|have|stored))?\s*(?:(?:about|on|of)\s+)?(?P<listed>\S.*?)?\W*$"
    r"|^\W*你(?:都|还)?(?:知道|记得|了解)(?:关于|有关)?(?P<known_han>\S.*?)的?(?:哪些|什么|多少)(?:事情?|信息)?\W*$"
    r"|^\W*你对(?P<toward_han>\S.*?)(?:知道|记得|了解)(?:些)?(?:什么|多少|哪些).{0,4}$"
    r"|^\W*(?:关于|对于?|有关)(?P<about_han>\S.*?)[，,]?\s*你(?:都|还)?(?:知道|记得|了解)(?:些)?(?:什么|多少"
    r"|哪些).{0,4}$"
    r"|^\W*(?:请|帮我|麻烦)*(?:总结|概括|归纳|汇总|说说|介绍)(?:一下)?(?:你)?(?:所)?(?:知道|记得"
    r"|了解)?的?(?:关于|有关)?"
    r"(?P<listed_han>\S.*?)?(?:的(?:一切|所有|事情?|情况|信息|内容))?\W*$",
    re.IGNORECASE,
)
_ABOUT_ASKER = re.compile(
    r"\babout (?:me|myself|us)\b|\bhow old (?:am i|are we)\b|我(?:今年)?(?:多大|几岁)"
    r"|我自己|关于我|(?:了解|记得|知道)我",
    re.IGNORECASE,
)
_SUMMARY_VERB = re.compile(
    r"\b(?:know|remember|stored?|you (?:have|got)|have you got|tell me about|summari[sz]e|sum up|recap)\b"
    r"|知道|记得|了解|总结|概括|归纳|汇总"
    r"|说说|介绍",
    re.I,
)
_SELF = re.compile(r"^(?:me|myself|us|i|我(?:们)?(?:自己)?)$", re.IGNORECASE)
_OWN_WORDS = re.compile(r"\b(?:i|we) (?:have |'ve )?(?:said|told|mentioned|wrote)\b|我(?:说|讲|提|告诉)", re.IGNORECASE)
_MY = re.compile(r"^(?:my|our|the)\s+|^我(?:们)?的?", re.IGNORECASE)
_NOTHING_TO_FORGET = re.compile(r"^(?:it|that|this|about it|me|you)$|^(?:它|吧|这个?|那个?|了)$", re.IGNORECASE)
_CORRECTS = re.compile(
    r"^\W*(?:(?:actually|correction|i meant|(?:sorry|oops|wait|no)?[,\s]{0,3}(?:i was wrong|i misspoke"
    r"|i got (?:it|that) wrong|my mistake"
    r"|scratch that|i should have said|that was wrong))\b|(?:no|wait|sorry)[,.!]? (?=(?:my|it|the|she|he"
    r"|i meant|i said)\b)(?:i (?:meant|said)\b)?"
    r"|let me correct (?:that|myself|this)\b)[\s,:;.!\u2014-]{0,4}"
    r"|^\W*(?:其实|更正|改一下|不对|(?:不好意思|抱歉|对不起)?[，,]?(?:我)?(?:刚才|之前|上次)?(?:说错|记错|搞错|弄错|写错)了?|纠正一下)[\uff0c,:\uff1a\u3002.\s]{0,3}",
    re.IGNORECASE,
)
_CONFIRMS = re.compile(
    r"^\W*(?:(?:yes|yep|yeah|please|confirm|confirmed|do it|do so|do that|go ahead|ok|okay|sure|delete (?:it|them)"
    r"|forget (?:it|them)|是的?|对的?|确认|好的?|可以|行|删(?:掉|除)?吧?|忘掉吧?)(?:$|[\s,.!\uff0c\u3002\uff01]+))+$",
    re.IGNORECASE,
)
_PRONOUN = re.compile(r"\b(?:he|she|him|they|them)\b", re.IGNORECASE)
_POSSESSIVE = re.compile(r"\b(?:his|their|hers|her)\b", re.IGNORECASE)
_HAN_PRONOUN = re.compile(r"他们|她们|他|她")
_WHAT_ABOUT = re.compile(
    r"^\W*(?:and |but |so )?(?:what about|how about|and)(?! (?:how|what|when|where|who|why|which|do|does|did|is"
    r"|are|was|were|can)\b)"
    r" (?P<other>[^?!.]{1,40}?)\W*$"
    r"|^\W*那?么?(?P<other_han>[^，。？?]{1,12}?)呢\W*$",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(r"\b(?:do|did|am|was|have) i\b|\bmy\b|我的?", re.IGNORECASE)


def memory_call(text: str, *, said_at: datetime, past: Sequence[str] = ()) -> MemoryCall:
    """Return the request in `text`; `past`: the former questions, oldest first. Without a clear request: chat."""
    rewritten = whole_question(text, past)
    asked = read_verb(rewritten)
    intent, query, confidence = _read_intent(rewritten, said_at)
    if asked is not None:
        intent, query, confidence = Intent(asked.verb), _name_topic(asked.query), 0.9
    is_own = bool(_SELF.match(query)) or bool(_OWN_WORDS.search(rewritten))
    spans = time_ranges_of(rewritten, said_at)
    # A day without a year means its last occurrence.
    best = max(spans, key=lambda span: (span.weight, span.start <= said_at, span.start), default=None)
    return MemoryCall(
        intent=intent,
        query=query,
        rewritten=rewritten,
        entities=tuple(entities(rewritten)),
        time_range=(best.start, best.end) if best else None,
        scope=OWN if is_own else ALL,
        confidence=confidence,
        is_operation=asked is not None or intent in {Intent.DELETE, Intent.SUMMARISE},
        argument=asked.argument if asked else "",
        is_statement=intent is Intent.DELETE and _SAID.search(query) is not None,
    )


def confirms(text: str) -> bool:
    """Return whether `text` says yes and nothing else."""
    return _CONFIRMS.match(text[:LONGEST_FOLLOW_UP]) is not None


def remove_correction(text: str) -> str:
    """Return `text` without the words that announce a correction, as in "actually, …"."""
    return _CORRECTS.sub("", text)


def needs_past(text: str) -> bool:
    """Return whether `text` may be a follow-up, which needs the question before it."""
    if len(text) > LONGEST_FOLLOW_UP:
        return False
    if read_correction(text):
        return True
    patterns = (_PRONOUN, _POSSESSIVE, _HAN_PRONOUN, _WHAT_ABOUT, _CONFIRMS)
    return any(pattern.search(text) for pattern in patterns) or (
        is_question(text) and not set(content_terms(text)) - QUESTION_WORDS and _ABOUT_ASKER.search(text) is None
    )


def whole_question(text: str, past: Sequence[str]) -> str:
    """Return `text` with names for its pronouns, or the last question applied to the thing that `text` names.

    A statement is not changed: its pronouns mostly refer to names in itself.
    """
    if not past or not needs_past(text) or states_something(text):
        return text
    last = past[-1]
    if found := _WHAT_ABOUT.match(text):
        other = (found["other"] or found["other_han"]).strip()
        return _about_other(last, other)
    name = _last_name(past)
    if name and find_word(text.casefold(), name.casefold()) < 0:
        named = _HAN_PRONOUN.sub(name, _POSSESSIVE.sub(f"{name}'s", _PRONOUN.sub(name, text)))
        if named != text:
            return named
    if is_question(text) and not set(content_terms(text)) - QUESTION_WORDS:
        return f"{text.strip()} {last}"
    return text


def _about_other(last: str, other: str) -> str:
    names = names_in(last)
    if names:
        at = find_word(last, names[0])
        return f"{last[:at]}{other}{last[at + len(names[0]) :]}" if at >= 0 else last
    return f"{_FIRST_PERSON.sub(lambda match: _swap_speaker(match[0], other), last, count=1)}"


def _swap_speaker(self_words: str, other: str) -> str:
    folded = self_words.casefold()
    if folded == "my":
        return f"{other}'s"
    if folded.startswith("我"):
        return f"{other}的" if folded == "我的" else other
    verb = {"do": "does", "am": "is", "have": "has"}.get(folded.split()[0], folded.split()[0])
    return f"{verb} {other}"


def _last_name(past: Sequence[str]) -> str:
    for question in reversed(past[-2:]):
        if names := names_in(question):
            return names[0]
    return ""


def names_in(text: str) -> list[str]:
    """Return the entities of a text as it spells them."""
    folded = text.casefold()
    places = [(find_word(folded, name), len(name)) for name in entities(text)]
    return [text[at : at + length] for at, length in places if at >= 0]


def _name_topic(what: str) -> str:
    """Return what a request names, without "my" in front, unless it is something that was said."""
    return what if _SAID.search(what) else _MY.sub("", what).strip() or what


def _read_intent(text: str, said_at: datetime) -> tuple[Intent, str, float]:
    if len(text) <= LONGEST_COMMAND:
        if found := _FORGET.match(text):
            what = (found["what"] or found["what_han"] or "").strip()
            if what and not _NOTHING_TO_FORGET.match(what):
                return Intent.DELETE, _name_topic(what), 0.9
            return Intent.CHAT, text, 0.5
        found = _SUMMARISE.search(text)
        if found and _SUMMARY_VERB.search(text):
            names = ("known", "toward_han", "listed", "known_han", "about_han", "listed_han")
            return Intent.SUMMARISE, next((found[group].strip() for group in names if found[group]), ""), 0.9
    if is_question(text):
        return Intent.SEARCH, text, 0.8
    if read_statements(text, speaker="user", said_at=said_at):
        return (Intent.UPDATE if _CORRECTS.search(text) else Intent.ADD), text, 0.8
    return Intent.CHAT, text, 0.5
