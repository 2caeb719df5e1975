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
_DETERMINERS = (
    r"(?:(?:all|every|each|any|some|of|this|that|these|those|the|my|our|your|last|latest|two|duplicate|old) ){0,4}"
)
_NOTES = r"(?:notes?|memory|memories|statements?|entry|entries)"
_NOTED = (
    rf"{_DETERMINERS}{_NOTES}(?: (?:about|on|of|regarding|concerning|with|saying) | that (?:says?"
    r"|mentions?) (?:that )?)"
)
_OBJECT = (
    rf"(?:(?:everything|anything|all|what|whatever)(?: that)? (?:{_KNOWN})|(?:everything|anything|all) (?:about|on) "
    rf"|{_NOTED})(?P<what>\S.{{0,200}}?)"
)
_NAMED_OBJECT = rf"{_DETERMINERS}(?P<what>\S.{{0,60}}?) (?:notes?|memory|memories)"  # "my hedgehog memory"
_ALL_OBJECT = rf"{_DETERMINERS}(?P<what>){_NOTES}"
_HAN_POLITE = r"^\W{0,5}(?:请|請|帮我|麻烦|替我|你|能不能|可以){0,3}"
_HAN_NOTES = "(?:记忆|笔记|记录|备忘)"
_HAN_OBJECT = (
    r"(?:所有|全部|一切)?(?:那条|这条)?(?:(?:我|你)(?:(?:说过|提到过?|告诉过?你|记得|知道|记住|存)的?|的)?)?(?:所有|全部)?(?:关于|有关)?"
    rf"(?P<what>\S.{{0,100}}?)的?(?:所有|全部|那些|那条|这条)?{_HAN_NOTES}"
)
_END = r"(?: (?:please|now|for me|from the archive|to the archive|together))?\W{0,5}$"
_HAN_END = r"(?:吧|一下|了|起来|出来){0,2}\W{0,5}$"
_INTO = (
    r"(?: (?:to|into|in)(?: the)? (?:long[- ]term|mid[- ]term|short[- ]term|one|a single)(?: (?:memory|note|layer))?)?"
)
_HAN_INTO = r"(?:到|为|成)?(?:长期|中期|短期|一条|一个)?(?:记忆|层)?"
_EDITS = "update|change|edit|rewrite|replace|correct|amend"
_HAN_EDITS = "修改|更新|改写|编辑|更正"
# The words of each verb: in English, and in Chinese.
_VERBS = {
    "delete": ("delete|remove|erase|forget|drop|get rid of", "删除|删掉|删了|忘掉|忘记|清除|移除"),
    "archive": ("archive|put away|shelve", "归档|存档|封存"),
    "restore": ("restore|bring back|recover|unarchive|reactivate", "恢复|找回来?|还原|取消归档"),
    "unfreeze": ("unfreeze|unlock|thaw", "解冻|解锁|取消冻结|解除冻结"),
    "freeze": ("freeze|lock|protect", "冻结|锁定|锁住"),
    "promote": ("promote", "提升|升级|转为长期"),
    "fuse": ("merge|fuse|combine|join", "合并|融合"),
    "rollback": (
        "roll ?back|revert|undo(?: (?:the|my|your) (?:last )?(?:changes?|edits?) (?:to|of|in))?",
        "回滚|回退|撤销(?:对)?",
    ),
    "audit": ("audit|who (?:has |have )?(?:read|seen|opened|accessed|changed|edited)", "审计|审查"),
    "summarise": ("summari[sz]e|sum up|recap", "总结|概括|归纳|汇总"),
}
_ALL_VERBS = {**_VERBS, "tag": ("tag|label", "标记"), "update": (_EDITS, _HAN_EDITS)}
_SEARCHES = r"(?:search|look|find|check|query|go)(?: me)?(?: up| in| into| for| through)?"
_HAN_SEARCHES = "(?:搜索|搜|查找|查询|检索|找|查)(?:一下|一搜|一查|下)?"
_LONE_OBJECT = (
    r"(?: (?:this|that|it|them|these|those|(?:the |my |your )?(?:last|latest|previous) (?:one|change|edit"
    r"|memory|thing)))?"
)
_HAN_LONE = r"(?:一下|它|这个|这条|那条|刚才的?|我?(?:上|刚)[一才]?[次条个]的?)?(?:修改|更改|改动|操作|记忆|笔记)?"
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
            rf"(?:tag|label|mark) (?:{_OBJECT}|{_NAMED_OBJECT.replace('what', 'named')}) (?:as|with)(?: the)?"
            r"(?: tag| label)? (?P<value>\S.{0,98}?)",
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
            rf"(?:{_EDITS}) (?:{_OBJECT}|{_NAMED_OBJECT.replace('what', 'named')})"
            r"(?:(?: (?:to|with|so that|by) |\s{0,3}[:\uff1a,]\s{0,3})(?P<value>\S.*?))?",
            _END,
        ),
    ),
    (
        "update",
        _compile(_HAN_POLITE, rf"(?:{_HAN_EDITS}){_HAN_OBJECT}(?:[:：,\uff0c]\s{{0,3}}(?P<value>\S.*?))?", _HAN_END),
    ),
    (
        "update",
        _compile(
            _HAN_POLITE,
            rf"(?:把|将){_HAN_OBJECT}(?:{_HAN_EDITS}|改)(?:为|成)?(?P<value>\S.*?)?",
            _HAN_END,
        ),
    ),
    # Searches: of the memories by name, or by a bare "search for".
    (
        "search",
        _compile(
            _POLITE, rf"{_SEARCHES} {_DETERMINERS}{_NOTES}(?: for| about| on| of| with|:) (?P<what>\S.{{0,200}}?)", _END
        ),
    ),
    (
        "search",
        _compile(_POLITE, rf"{_SEARCHES} (?P<what>\S.{{0,200}}?) in {_DETERMINERS}(?:{_NOTES}|archive|history)", _END),
    ),
    ("search", _compile(_POLITE, r"(?:search(?: for)?|look up|look for)(?: |: ?)(?P<what>\S.{0,200}?)", _END)),
    (
        "search",
        _compile(_HAN_POLITE, rf"(?:在?我?的?{_HAN_NOTES}[里中])?{_HAN_SEARCHES}(?:{_HAN_OBJECT})", _HAN_END),
    ),
    (
        "search",
        _compile(
            _HAN_POLITE,
            rf"(?:在?我?的?{_HAN_NOTES}[里中])?(?:搜索(?:一下)?|搜一下|搜一搜|搜(?=[:：])|查一下|查找(?:一下)?|查询(?:一下)?|检索(?:一下)?|找一下|找找)"
            r"[:：]?(?:关于|有关)?(?P<what>\S.{0,60}?)",
            _HAN_END,
        ),
    ),
    # Verbs without any object, or with all memories; and "my hedgehog memory".
    *(
        (verb, _compile(_POLITE, f"(?:{words})(?: {_ALL_OBJECT}|{_LONE_OBJECT})", _END))
        for verb, (words, _) in _ALL_VERBS.items()
        if verb not in {"delete", "summarise"}
    ),
    *(
        (verb, _compile(_POLITE, f"(?:{words}) {_NAMED_OBJECT}{_INTO}", _END))
        for verb, (words, _) in _ALL_VERBS.items()
    ),
    *(
        (verb, _compile(_HAN_POLITE, f"(?:{words}){_HAN_LONE}(?P<what>)", _HAN_END))
        for verb, (_, words) in _ALL_VERBS.items()
        if verb not in {"delete", "summarise"}
    ),
    ("rollback", _compile(_HAN_POLITE, rf"(?:撤回|取消){_HAN_LONE}(?P<what>)", _HAN_END)),
]


@dataclass(frozen=True)
class VerbRequest:
    """A verb of memory operations. query: what the memories are about, empty if it names none; argument: the tag, or
    the new text."""

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
            what = groups.get("what") or groups.get("named") or ""
            return VerbRequest(verb, what.strip(), (groups.get("value") or "").strip(_QUOTES + " "))
    return None


def read_tag(text: str) -> str:
    """Return the tag that a request names, or an empty text."""
    request = read_verb(text)
    return request.argument if request is not None and request.verb == "tag" else ""
