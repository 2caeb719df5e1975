"""Statements that something is off or put off: a plan that is cancelled or gets another day, a habit that was given up,
a tie that was cut. Pure."""

import re

from vault.lexicon.temporal_expressions import remove_times
from vault.reader.rules.corrections import begins_with_time

LONGEST_CANCELLATION = 200  # characters
_OFF = (
    r"(?:off(?! (?:on|to|at|work|sick|the)\b)|cancel+ed|called off|not happening(?: any ?more)?"
    r"|no longer happening|not going ahead|not taking place)"
)
_CANCELLED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"^\W*(?:sadly,? |unfortunately,? |so )?(?:the |my |our |that )?(?P<what>[^,.;!?]{{2,60}}?) (?:is|are"
        r"|was|were|has been|have been|got|'s)"
        rf" (?:now |all |been )?{_OFF}(?: for (?:now|good))?\W*$",
        r"^\W*(?:sadly,? |unfortunately,? )?(?:the |my |our |that )?(?P<what>[^,.;!?]{2,60}?) (?:isn't|aren't|won't be)"
        r" (?:going ahead|happening|taking place)(?: any ?more| after all)?\W*$",
        r"^\W*(?:i(?:'m| am)|we(?:'re| are))? ?not (?:going to |doing |planning (?:to "
        r"|on )?)?(?P<what>[^,.;!?]{3,60}?) any ?more\W*$",
        r"^\W*(?:i(?:'m| am)|we(?:'re| are)) no longer (?:going to |doing |planning (?:to "
        r"|on )?)?(?P<what>[^,.;!?]{3,60}?)(?: any ?more)?\W*$",
        r"^\W*(?:i|we) (?:don't|do not|no longer|won't|will not) (?:want to |plan to "
        r"|go to )?(?P<what>[^,.;!?]{3,60}?) any ?more\W*$",
        r"^\W*(?:i|we)(?:'ve| have)? (?:just |now )?(?:cancel+ed|called off|gave up(?: on)?|given up(?: on)?|quit"
        r"|stopped|dropped|abandoned|scrapped|shelved)"
        r" (?:the |my |our |plans? (?:for|to) )*(?P<what>[^,.;!?]{3,60}?)\W*$",
        r"^\W*(?:我们?|那个?|这个?)?(?:的)?(?P<what>[^，。！？\s]{1,12}?)(?:(?:没[法能])?[去办做搞参加学练考买租](?:不[成了]了)"
        r"|不(?:用)?(?:去|做|办|参加|学|练|考|搞|买|租)了|(?:被|已经)?取消了?"
        r"|泡汤了|黄了|作罢了?|告吹了?|没戏了|吹了)\W*$",
        r"^\W*(?:我们?)?(?:现在|已经|以后|决定)?(?:不|不再|再也不)(?:打算|想|准备|计划)?(?:去|参加|买)?(?P<what>[^，。！？\s]{2,12}?)了\W*$",
        r"^\W*(?:我们?)?(?:已经)?(?:取消|放弃)了?(?P<what>[^，。！？\s]{2,14}?)了?\W*$",
    )
)
_TO = r"(?: (?:back|forward|up|out|by [^,.;!?]{2,20}?|a (?:day|week|month|year)))?,? (?:to|till|until|for) (?=[\w'])"
_MOVED_VERB = r"(?:moved|pushed|postponed|rescheduled|delayed|shifted|changed|put off|brought forward)"
_MOVED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"^\W*(?:the |my |our |that )?(?P<what>[^,.;!?]{{2,60}}?)"
        rf" (?:is|was|has been|have been|got|'s been|gets) (?:now )?{_MOVED_VERB}{_TO}",
        rf"^\W*(?:i|we|they|he|she|somebody|the \w+)(?:'ve|'s| have| has| had)?(?: just| now)?"
        rf" {_MOVED_VERB} (?:the |my |our )?(?P<what>[^,.;!?]{{2,60}}?){_TO}",
        r"^\W*(?:我们?)?(?:的|那个?|这个?|把)?(?P<what>[^，。！？\s]{2,14}?)[，]?(?:又|被|已经|临时|通知|说)?"
        r"(?:改期?|挪|推迟|提前|延期|延后|推后|调整?|换)(?:到|成|为|至)(?=[^了\s])",
    )
)
_NOTICE = re.compile(r"(?:的)?(?:时间|日期|通知)?(?:下来了|来了|出来了|变了)?$")
_PARTED = re.compile(
    r"\b(?:broke|broken|split|splitting|breaking) up\b|\bgot divorced\b|\bare divorced\b|分手了|离婚了|分开了\W*$",
    re.IGNORECASE,
)
_PARTNER = re.compile(
    r"\b(?:girlfriend|boyfriend|partner|fianc\u00e9e?|fiancee?|wife|husband|dating|engaged|married"
    r"|seeing somebody|seeing someone|together with)\b"
    r"|女朋友|男朋友|女友|男友|对象|未婚[夫妻]|老公|老婆|丈夫|妻子|恋爱|订婚|结婚|在一起",
    re.IGNORECASE,
)
# Each clause is read by itself: "厦门去不成了，学校不放人", "only two signed up so my session isn't going ahead".
_BETWEEN = re.compile(r"[,;.!\uff0c\uff1b\u3002\uff01]+\s*|\s(?:so|but|because|since)\s", re.IGNORECASE)
_CONDITION = re.compile(
    r"^\W*(?:if|when|unless|in case|until|even if)\b|^(?:如果|要是|万一|除非|即使|就算)|的话", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"[.!\u3002\uff01]\s*")
MOST_CLAUSES = 8
_ENDING = re.compile(r"(?<=..)(?:之行|之旅|的(?:旅行|计划|事情?)|这件事)$")
_EMPTY = re.compile(
    r"^(?:it|that|this|them|things?|everything|all|[我你您咱他她]们?|他|她|它|这个?|那个?|都|要|行|好|懂|错|对|来|太|多|过|用|容易|得)$",
    re.IGNORECASE,
)


def read_cancelled(text: str) -> str:
    """Return what a statement says is off, empty if it says no such thing."""
    if len(text) > LONGEST_CANCELLATION:
        return ""
    told = " ".join(text.replace("\u2019", "'").split())
    clauses = [] if _CONDITION.search(told) else [told, *_BETWEEN.split(told)[:MOST_CLAUSES]]
    for clause in clauses:
        for pattern in _CANCELLED:
            if (found := pattern.match(clause)) and not _EMPTY.match(what := found["what"].strip()):
                return _ENDING.sub("", what)
    return ""


def read_moved(text: str) -> str:
    """Return what a statement says was put off or brought forward to another time, empty if it says no such thing."""
    if len(text) > LONGEST_CANCELLATION or _CONDITION.search(text):
        return ""
    told = " ".join(text.replace("\u2019", "'").split())
    for start in (told, *_SENTENCE_END.split(told)[1:MOST_CLAUSES]):
        for pattern in _MOVED:
            found = pattern.match(start)
            if found is None or not begins_with_time(start[found.end() :]):
                continue
            what = _NOTICE.sub("", remove_times(found["what"]).strip().removeprefix("的"))
            if what and not _EMPTY.match(what):
                return what
    return ""


def tells_of_parting(text: str) -> bool:
    """Return whether a statement says that two people are no couple any more."""
    return len(text) <= LONGEST_CANCELLATION and _PARTED.search(text) is not None


def tells_of_partner(text: str) -> bool:
    return _PARTNER.search(text) is not None
