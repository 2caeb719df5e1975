"""Requests that name a verb of memory operations and stored memories: "archive my notes about the boiler".

English and Chinese, by patterns only. Pure. Each pattern needs an object that is memory, such as "my notes" or "what I
said": "archive the files" states a task.
"""

import re
from dataclasses import dataclass, field

LONGEST_REQUEST = 300  # characters; what is longer is a text
_POLITE = r"^\W{0,5}(?:(?:please|pls|ok|okay|now|and|so|hey|could you|can you|would you|will you)[, ]{1,3}){0,3}"
_KNOWN = (
    r"(?:(?:i|we|you)(?: have|'ve)? (?:said|told you|mentioned|wrote|noted|know|remember|stored)"
    r"|you have(?: stored)?) (?:about|on|of|regarding) "
)
_NOTED = (
    r"(?:(?:all|every|each|any|some|of|these|those|the|my|our|your|last|latest|two|duplicate|old) ){0,4}"
    r"(?:notes?|memory|memories|statements?|entry|entries) (?:about|on|of|regarding) "
)
_OBJECT = (
    rf"(?:(?:everything|anything|all|what|whatever)(?: that)? (?:{_KNOWN})|(?:everything|anything|all) (?:about|on) "
    rf"|{_NOTED})(?P<what>\S.{{0,200}}?)"
)
_HAN_POLITE = r"^\W{0,5}(?:请|請|帮我|麻烦|替我|你|能不能|可以){0,3}"
_HAN_OBJECT = (
    r"(?:所有|全部|一切)?(?:(?:我|你)(?:(?:说过|提到过?|告诉过?你|记得|知道|记住|存)的?|的)?)?(?:所有|全部)?(?:关于|有关)?"
    r"(?P<what>\S.{0,100}?)的?(?:所有|全部|那些)?(?:记忆|笔记|记录)"
)
_END = r"(?: (?:please|now|for me|from the archive|to the archive|together))?\W{0,5}$"
_HAN_END = r"(?:吧|一下|了|起来|出来){0,2}\W{0,5}$"
_INTO = (
    r"(?: (?:to|into|in)(?: the)? (?:long[- ]term|mid[- ]term|short[- ]term|one|a single)(?: (?:memory|note|layer))?)?"
)
_HAN_INTO = r"(?:到|为|成)?(?:长期|中期|短期|一条|一个)?(?:记忆|层)?"
# The words of each verb: in English, and in Chinese.
_VERBS = {
    "archive": ("archive|put away|shelve", "归档|存档|封存"),
    "restore": ("restore|bring back|recover|unarchive|reactivate", "恢复|找回来?|还原|取消归档"),
    "freeze": ("freeze|lock|protect", "冻结|锁定|锁住"),
    "promote": ("promote", "提升|升级|转为长期"),
    "fuse": ("merge|fuse|combine|join", "合并|融合"),
    "rollback": ("roll ?back|revert|undo(?: (?:the|my|your) (?:last )?(?:changes?|edits?) (?:to|of|in))?", "回滚|回退"),
    "audit": ("audit|who (?:has |have )?(?:read|seen|opened|accessed|changed|edited)", "审计|审查"),
}
_QUOTES = "\"'\u201c\u201d\u2018\u2019\u300c\u300d#"


def _compile(lead: str, body: str, end: str) -> re.Pattern[str]:
    return re.compile(lead + body + end, re.IGNORECASE)


_PATTERNS = [
    *((verb, _compile(_POLITE, f"(?:{words}) {_OBJECT}{_INTO}", _END)) for verb, (words, _) in _VERBS.items()),
    *((verb, _compile(_HAN_POLITE, f"(?:{words}){_HAN_OBJECT}", _HAN_END)) for verb, (_, words) in _VERBS.items()),
    *(
        (verb, _compile(_HAN_POLITE, f"(?:把|将){_HAN_OBJECT}(?:都|全部)?(?:{words}){_HAN_INTO}", _HAN_END))
        for verb, (_, words) in _VERBS.items()
    ),
    ("audit", _compile(r"^\W{0,5}有?谁", rf"(?:看|读|查|改|打开|访问)过{_HAN_OBJECT}", r"[吗呢]?\W{0,5}$")),
    (
        "tag",
        _compile(
            _POLITE,
            rf"(?:tag|label|mark) {_OBJECT} (?:as|with)(?: the)?(?: tag| label)? (?P<value>\S.{{0,98}}?)",
            _END,
        ),
    ),
    ("tag", _compile(_POLITE, rf"add (?:the )?(?:tag|label) (?P<value>\S.{{0,98}}?) to {_OBJECT}", _END)),
    (
        "tag",
        _compile(
            _HAN_POLITE,
            rf"(?:给|为|把|将){_HAN_OBJECT}都?(?:标记为|标为|归类为|(?:打|加|贴)上?(?:标签)?)[:：]?"
            r"(?P<value>\S.{0,98}?)(?:的?标签)?",
            _HAN_END,
        ),
    ),
    (
        "update",
        _compile(
            _POLITE,
            rf"(?:update|change|edit|rewrite|replace) {_OBJECT}(?: (?:to|with|so that|by) (?P<value>\S.*?))?",
            _END,
        ),
    ),
    ("update", _compile(_HAN_POLITE, f"(?:修改|更新|改写|编辑){_HAN_OBJECT}", _HAN_END)),
    (
        "update",
        _compile(
            _HAN_POLITE,
            rf"(?:把|将){_HAN_OBJECT}(?:修改|更新|改写|编辑|改)(?:为|成)?(?P<value>\S.*?)?",
            _HAN_END,
        ),
    ),
]


@dataclass(frozen=True)
class VerbRequest:
    """A verb of _VERBS, "tag" or "update". query: what the memories are about; argument: the tag, or the new text."""

    verb: str
    query: str = field(repr=False)
    argument: str = field(default="", repr=False)


def read_verb(text: str) -> VerbRequest | None:
    """Return the memory operation that a text asks for, or None."""
    if len(text) > LONGEST_REQUEST:
        return None
    for verb, pattern in _PATTERNS:
        if found := pattern.match(text):
            groups = found.groupdict()
            return VerbRequest(verb, groups["what"].strip(), (groups.get("value") or "").strip(_QUOTES + " "))
    return None


def read_tag(text: str) -> str:
    """Return the tag that a request names, or an empty text."""
    request = read_verb(text)
    return request.argument if request is not None and request.verb == "tag" else ""
