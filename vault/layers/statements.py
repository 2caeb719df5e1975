"""Statements about a person, and their effect on stored ones: add, update, delete or nothing. Pure."""

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from uuid import UUID

from vault.lexicon.tokens import terms
from vault.reader.rules import is_question, sentences
from vault.vocabulary import EntryAction, EntryQueue

CAR = "car"
SAME = 0.8  # Jaccard similarity of the terms from which two statements say the same
ABOUT_THE_SAME = 0.5  # from which one that takes something back is about the other
_CLAUSE = r"(?P<value>[^.,;!?\n。，；！？]{1,80})"
_JOBS = (
    "engineer|teacher|doctor|nurse|student|designer|artist|writer|lawyer|manager|developer|programmer|chef|scientist"
    "|researcher|counselor|musician|photographer|accountant|driver|farmer|planner"
)
_THE_PLACES = (
    "(?:netherlands|uk|us|usa|united|states|hague|philippines|countryside|coast|city|suburbs|maldives|bronx)\\b"
)
_ZH_JOBS = "员|师|医生|护士|教授|编辑|记者|学生|经理|司机|作家|警察|农民|工人|研究生|设计|销售|会计|运营|翻译"
_ZH_CLAUSE = _CLAUSE.replace("value", "chinese")
# The fields of a profile, each with its patterns in English and in Chinese.
_PATTERNS = (
    ("name", rf"\bmy name(?:'s| is) {_CLAUSE}", rf"我(?:的名字)?(?:叫|是叫){_ZH_CLAUSE}"),
    (
        "birthday",
        rf"\bmy birthday(?:'s| is)(?: on)? {_CLAUSE}|\bi was born on (?P<born_on>[^.,;!?\n]{{1,80}})",
        rf"我(?:的)?生日(?:是|在)?{_ZH_CLAUSE}|我(?:是)?(?:在|于)?(?P<born_at>(?:\d{{4}}年)?\d{{1,2}}月\d{{1,2}}[日号])出?生",
    ),
    (
        "birth_year",
        r"\bi was born in (?:[a-z]+ )?(?P<value>(?:19|20)\d\d)",
        r"我(?:出生[于在]|是)?(?:(?<=[于在是])(?P<chinese>(?:19|20)\d\d)年|(?P<born>(?:19|20)\d\d)年[^，。]{0,8}出?生)",
    ),
    (
        "age",
        r"\bi(?:'m| am|(?: just)? turned) (?P<value>\d{1,3})(?= years? old| now\b|[.,;!?]|$)",
        r"我(?:今年|现在|已经|刚满)*(?P<chinese>\d{1,3}|[一二三四五六七八九十百]{1,5})岁",
    ),
    (
        "gender",
        r"\bi(?:'m| am) an? (?P<value>woman|man|girl|boy)\b",
        r"我是(?:一?个)?(?P<chinese>[男女])(?:人|生|性|孩)",
    ),
    (
        "home",
        rf"\b(?:i|we)(?: now)?(?:'ve| have| just)? ?(?:live|are living|am living) (?:in|at) {_CLAUSE}"
        rf"|\b(?:i'm|we're) (?:now )?living (?:in|at) (?P<living>[^.,;!?\n]{{1,80}})"
        r"|\b(?:i|we)(?: now)?(?:'ve| have)? ?(?:just |recently )?(?:moved|relocated) (?:in "
        rf"|from [^.,;!?\n]{{1,40}}? )?to "
        rf"(?!(?:an?|my|our|another|this|that|next|front|back|first|second|tears)\b|the (?!{_THE_PLACES}))"
        r"(?P<moved>[^.,;!?\n]{1,80})",
        rf"我(?:们)?(?:现在|如今)?(?:住在|(?:从[^，。]{{1,12}})?(?:搬|移居)(?:家)?到了?){_ZH_CLAUSE}"
        r"|^(?:现在|已经)?从[^，。]{1,12}搬(?:家)?到了?(?P<moved_han>[^，。；！？\n]{1,40})",
    ),
    ("origin", rf"\bi(?:'m| am) (?:originally )?from {_CLAUSE}", rf"我来自{_ZH_CLAUSE}"),
    (
        "work",
        rf"\bi (?:now )?work (?:as|at|for) {_CLAUSE}|\bi(?:'m| am) an? (?P<job>(?:\w+[ -]){{0,2}}(?:{_JOBS}))\b",
        r"我(?:现在)?在(?P<chinese>[^，。]{1,20}?)(?:工作|上班)|我(?:现在)?在[^，。]{1,15}?(?:做|当)"
        rf"(?P<post>[^，。了]{{0,8}}(?:{_ZH_JOBS}))"
        rf"|我是(?:一?[名位个])?(?P<profession>[^，。的]{{0,8}}(?:{_ZH_JOBS}))"
        r"|^(?:我)?(?:已经|刚|上?个?月|最近)*(?:从[^，。]{1,12})?跳槽到?(?:去)?了?(?P<hopped>[^，。；！？\n]{1,20})"
        r"|我(?:现在)?换到了?(?P<changed>[^，。；！？\n]{1,20}?)(?:工作|上班)",
    ),
)
# Last words of attributes that have one value at a time: "my phone number", 我的车牌号. "My sister is …" tells of her.
_SINGLE = re.compile(
    r"(?:^|\b)(?:numbers?|passwords?|pins?|codes?|phone|mobile|e-?mail|address|name|nickname|surname|birthday|age|size|height|weight"
    r"|salary|wage|rent|budget|plan|job|employer|company|title|role|deadline|seat|gate|room|flight|username|login|wifi|plate"
    r"|blood type|type|timezone|time zone|postcode|zip|bank|landlord|gp|doctor|dentist|boss|manager"
    r"|favou?rite .{1,40})$"
    r"|(?:号码?|密码|地址|邮箱|名字|昵称|生日|年龄|身高|体重|工资|薪水|月薪|年薪|房租|租金|预算|车牌|座位|房间|血型|学号|工号|尺码|鞋码|邮编|老板|房东)$",
    re.IGNORECASE,
)
_CAR = re.compile(
    r"\bi (?:(?:now|still|currently) )?drive an? (?P<value>(?!(?:lot|bit|taxi|bus|truck|lorry|van for"
    r"|hard)\b)[^.,;!?\n]{1,40})"
    r"|我(?:现在)?开的?(?:车)?是(?:一辆)?(?P<chinese>[^，。；！？\n]{1,20})",
    re.IGNORECASE,
)
_EMPLOYED = re.compile(r"\bi (?:now )?work (?:at|for)\b|在[^，。]{1,20}?(?:工作|上班)|跳槽|换到", re.IGNORECASE)
_IS_NOW = re.compile(r"\b(?:now|these days|nowadays|instead)\b|现在|如今", re.IGNORECASE)
# Texts that fill a field, to be searched for when a question asks for it.
FILLING = {
    "name": "my name is 我叫 我的名字",
    "birthday": "I was born on my birthday is 我生日 出生",
    "birth_year": "I was born in years old 我出生 岁",
    "age": "I am years old 我今年 岁",
    "home": "I live in I moved to 我住在 我搬到",
    "origin": "I am from originally 我来自 老家",
    "work": "I work as I work at my job 我在 工作 上班",
}
# Questions for fields of one's own profile, each with the fields that answer it.
_ASKED = (
    (
        ("name",),
        r"\bwhat(?:'s| is| was) my (?:\w+ )?name\b|\bwho am i\b|\bmy name\?"
        r"|我(?:的名字)?(?:叫|是)(?:什么|啥|谁)|我的名字",
    ),
    (
        ("birthday",),
        r"\bmy (?:next )?birthday\b|我(?:的)?(?:下个?)?生日",
    ),
    (
        ("birthday", "birth_year", "age"),
        r"\bhow old am i\b|\bmy age\?|\b(?:when|what year) was i born|我(?:今年|现在)?(?:几岁|多大|多少岁)"
        r"|我(?:是)?(?:哪|什么时候|几几|何)年?.{0,3}(?:出生|生的)",
    ),
    (
        ("home",),
        r"\bwhere (?:do|am) i (?:live|living)\b|\bwhat (?:city|town|country) do i live\b"
        r"|我(?:现在)?(?:住|家)在?哪|我住什么",
    ),
    (("origin",), r"\bwhere (?:am i|do i come) from\b|我(?:是哪里?的?人|来自哪|老家在?哪)"),
    (
        ("work",),
        r"\bwhat do i do(?: for (?:a living|work))?\?*$|\bwhat(?:'s| is) my (?:job|profession|occupation|work)\b"
        r"|\bwh(?:ere|o) do i work\b|我(?:是)?(?:做|从事|干)(?:什么|啥|哪)|我在哪.{0,2}(?:工作|上班)"
        r"|我的(?:工作|职业)是",
    ),
)
_ASKED_FIELDS = tuple((frozenset(names), re.compile(pattern, re.IGNORECASE)) for names, pattern in _ASKED)
_FIELDS = tuple((name, re.compile(f"{english}|{chinese}", re.IGNORECASE)) for name, english, chinese in _PATTERNS)
_OWN = re.compile(
    r"\bmy (?P<name>(?:favou?rite )?[a-z]+(?: [a-z]+)?) (?:is|are) (?P<value>[^.,;!?\n]{1,80})"
    r"|我(?:的|最喜欢的)(?P<own>[\u4e00-\u9fff]{1,6})是(?P<chinese>[^，。；！？\n]{1,40})",
    re.IGNORECASE,
)
_LIKES = re.compile(
    r"\bi (?:really |also |still |always )*(?P<likes>like|love|enjoy|prefer|adore)s? (?P<object>[^.,;!?\n]{1,60})"
    r"|\bi (?:really )?(?:don't|do not|no longer|can't|cannot) (?:like|love|enjoy|stand|eat|drink) "
    r"(?P<not>[^.,;!?\n]{1,60})"
    r"|\bi (?:hate|dislike) (?P<hates>[^.,;!?\n]{1,60})"
    r"|我(?:很|也|最|特别)?喜欢(?P<zh>[^，。；！？\n]{1,20})|我(?:不再?喜欢|讨厌|不吃|不喝)(?P<zhnot>[^，。；！？\n]{1,20})",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(
    r"\b(?:no longer|not any ?more|n't (?:[a-z']+ ){0,6}any ?more|stopped|gave up|quit)\b|不再|再也不|已经不",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"(?<!\s)\s++(?:now|any ?more|these days|since|because|but|and|with|for|last|this|again"
    r"|(?:\w+ ){1,2}(?:years?|months?|weeks?|days?) ago)\b.*$",
    re.IGNORECASE,
)
# The speaker as the subject. `my sister` and 我姐姐 are other people, unless the speaker follows as the subject.
_SELF = re.compile(r"\b(?:i|me|i'm|i've|i'd|i'll|we|we're|we've|we'll|my (?:favou?rite|own))\b|[我咱]", re.IGNORECASE)
_KIN = (
    "爸|妈|父|母|爷|奶|外公|外婆|姥|哥|弟|姐|妹|老公|老婆|丈夫|妻子|爱人|先生|太太|儿子|女儿|孩子|男友|女友|男朋友|女朋友|朋友|同事"
    "|同学|室友|老板|领导|经理|邻居|老师|叔|伯|舅|姑|姨|表|堂|侄|孙|岳|公公|婆婆"
)
_OF_OTHERS = re.compile(rf"[我咱](?:们家?|家)?的?(?:{_KIN})[^，。；！？\n我咱]*")
_AGENT = re.compile(
    r"\bi(?:'d| would)? (?:recommend|suggest)|\bi(?:'ll| will) (?:remember|remind|keep|help)\b(?! this\b)|\bi can help"
    r"|我(?:建议|推荐|会记住(?!这件事)|会提醒|可以帮)",
    re.IGNORECASE,
)
_NOTHING = re.compile(r"^[\s\-*•]*+(?:none|null|n/a|无|没有)?+[\s.。]*+$", re.IGNORECASE)
_FAILURE = re.compile(
    r"^\W*+(?:error|exception|traceback)\b.{0,40}(?::|response|llm|model|api)|could not get (?:a )?response"
    r"|rate limit(?:ed)? (?:exceeded|reached)|service unavailable|internal server error|请求失败|服务不可用",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Distilled:
    """The part of a page that becomes a memory: the question itself, a statement derived from it, or the answer.

    name: the profile field that a model saw in it; empty if patterns decide.
    """

    page_id: UUID
    queue: EntryQueue
    persona_id: UUID
    cube_id: UUID
    at: datetime
    text: str = field(repr=False)
    name: str = ""


@dataclass(frozen=True)
class Slot:
    """The attribute that a statement gives a value to; a slot has one valid value at a time."""

    name: str
    value: str = field(repr=False)

    @property
    def is_profile(self) -> bool:
        return not self.name.startswith("likes ")

    @property
    def is_single(self) -> bool:
        """Return whether the attribute plainly has one value: a field, a liking, or what is called like one."""
        return self.is_field or not self.is_profile or self.name == CAR or _SINGLE.search(self.name) is not None

    @property
    def is_field(self) -> bool:
        """Return whether the slot is a standard field of the profile."""
        return any(self.name == name for name, _ in _FIELDS)


@dataclass(frozen=True)
class StoredStatement:
    """An entry of a queue to compare with. name: the profile field that it fills."""

    id: UUID
    text: str = field(repr=False)
    said_at: datetime
    name: str = ""

    @cached_property
    def slot(self) -> "Slot | None":
        return find_slot_or_name(self.text, self.name)

    @cached_property
    def terms(self) -> frozenset[str]:
        return frozenset(terms(self.text))


@dataclass(frozen=True)
class Reconciled:
    """The effect of a statement on a queue, and the reason. other: the entry that it repeats, replaces or withdraws."""

    action: EntryAction
    reason: str
    other: UUID | None = None
    is_older: bool = False  # the statement was said before the entry, which stays in force


def is_worth_keeping(text: str) -> bool:
    """Return whether a text has content and is no provider's error message."""
    return _NOTHING.match(text) is None and _FAILURE.search(text) is None


def is_about_self(text: str) -> bool:
    """Return whether the speaker is the subject of a text, or it fills a slot of theirs."""
    told = _OF_OTHERS.sub(" ", text.replace("\u2019", "'"))
    return _SELF.search(told) is not None or find_slot(text) is not None


def knowledge_lines(text: str) -> list[str]:
    """Return the lines of a list that have content."""
    return [line.strip() for line in text.splitlines() if is_worth_keeping(line)]


def profile_text(present: str, new: str) -> str:
    """Return the profile after an update: a short or empty text, or an error message, leaves the old one."""
    return new if is_worth_keeping(new) and len(new.strip()) >= 30 else present


def find_slot(text: str) -> Slot | None:
    """Return the slot that a statement fills: a field of the profile, a possession, or a liking."""
    for name, pattern in _FIELDS:
        if (match := pattern.search(text)) and (value := _matched_value(match)):
            return Slot(name, value)
    if match := _CAR.search(text):
        return Slot(CAR, _matched_value(match))
    if match := _OWN.search(text):
        return Slot(
            _favourite(match) + _fold_case(match["name"] or match["own"]),
            _trim_value(match["value"] or match["chinese"]),
        )
    if match := _LIKES.search(text):
        liked = match["object"] or match["zh"]
        thing = liked or match["not"] or match["hates"] or match["zhnot"]
        return Slot(f"likes {' '.join(terms(_trim_value(thing))) or _fold_case(thing)}", "yes" if liked else "no")
    return None


def _favourite(match: re.Match[str]) -> str:
    return "favourite " if match[0].startswith("我最喜欢的") else ""


def asked_fields(question: str) -> frozenset[str]:
    """Return the fields of the asker's profile that a question is for; empty if it asks for something else."""
    told = question.strip().replace("\u2019", "'")
    return next((names for names, pattern in _ASKED_FIELDS if pattern.search(told)), frozenset())


def fills_field(text: str, fields: AbstractSet[str]) -> bool:
    """Return whether a statement fills one of the fields."""
    slot = find_slot(text) if fields else None
    return slot is not None and slot.name in fields


def find_slot_or_name(text: str, name: str) -> Slot | None:
    """Return `find_slot`; if no pattern matches, the field `name` with the whole statement as its value."""
    return find_slot(text) or (Slot(name, text) if name else None)


def agent_statements(text: str) -> list[str]:
    """Return an assistant's recommendations and promises, sentence by sentence; never a provider's failure."""
    if not is_worth_keeping(text):
        return []
    return [sentence for sentence in sentences(text) if _AGENT.search(sentence) and not is_question(sentence)]


def reconcile(text: str, said_at: datetime, stored: Sequence[StoredStatement], name: str = "") -> Reconciled:
    """Compare a statement with the entries of its queue. name: the profile field that it is known to fill."""
    slot, words = find_slot_or_name(text, name), set(terms(text))
    for entry in stored:
        theirs = entry.slot
        if slot is not None and theirs is not None and slot.name == theirs.name and slot.is_single:
            if slot.name == "work" and bool(_EMPLOYED.search(text)) != bool(_EMPLOYED.search(entry.text)):
                continue  # a profession and an employer
            if slot.name == CAR and not _IS_NOW.search(text) and _fold_case(slot.value) != _fold_case(theirs.value):
                continue  # somebody may drive two
            if _fold_case(slot.value) == _fold_case(theirs.value):
                return Reconciled(EntryAction.NOTHING, "same_value", entry.id)
            took_back = _TAKEN_BACK.search(text) is not None
            action = EntryAction.DELETE if took_back else EntryAction.UPDATE
            reason = "taken_back" if took_back else "other_value"
            return Reconciled(action, reason, entry.id, is_older=said_at < entry.said_at)
    near = max(((_word_overlap(words, entry.terms), entry.id) for entry in stored), default=None)
    if near is not None and near[0] >= SAME:
        return Reconciled(EntryAction.NOTHING, "same_words", near[1])
    if near is not None and near[0] >= ABOUT_THE_SAME and _TAKEN_BACK.search(text):
        return Reconciled(EntryAction.DELETE, "taken_back", near[1])
    return Reconciled(EntryAction.ADD, "new")


def _matched_value(match: re.Match[str]) -> str:
    return next((_trim_value(value) for value in match.groupdict().values() if value), "")


def _trim_value(text: str) -> str:
    return _TAIL.sub("", text.strip()).strip()


def _fold_case(text: str) -> str:
    return " ".join(text.casefold().split())


def _word_overlap(first: AbstractSet[str], other: AbstractSet[str]) -> float:
    return len(first & other) / len(first | other) if first and other else 0.0
