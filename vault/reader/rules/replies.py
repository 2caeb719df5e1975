"""Replies: "In Lisbon." after "Where do you live?" states "I live in Lisbon." Pure.

A reply names no subject, so that it is read together with the question before it, which asks its speaker about himself.
"""

import re

from vault.lexicon.tokens import content_terms, language_of
from vault.reader.rules.extraction import states_something
from vault.reader.rules.kinds import is_question
from vault.reader.rules.sentences import sentences

LONGEST_REPLY = 100  # characters
LONGEST_QUESTION = 160
_YES = re.compile(
    r"^(?:yes|yeah|yep|yup|of course|definitely|absolutely|correct|exactly|i do|i am|i have|i did)\b"
    r"[\s,.!;:\u2014-]*"
    r"(?:i (?:do|am|have|did)\b[\s,.!]*)?",
    re.IGNORECASE,
)
_NO = re.compile(
    r"^(?:(?:no|nope|nah|not really|not any ?more|not yet|never|i don't|i do not|i'm not|i haven't|i didn't)\b"
    r"[\s,.!;:\u2014-]*){1,3}"
    r"(?:i (?:don't|do not|'m not|am not|haven't|didn't)(?=\W*$|,)[\s,.!]*)?",
    re.IGNORECASE,
)
_HAN_YES = re.compile(r"^(?:是的?|对[的啊呀]?|嗯+|有的?|会的?|当然|没错)(?:[啊呀呢]|[\uff0c,。!！\s])*$")
_HAN_NO = re.compile(r"^(?:还|从来?|也)?(?:不|没|否)\S{0,5}$")
# Replies that state nothing, also after a question.
_SAYS_NOTHING = re.compile(
    r"^\W*(?:ok(?:ay)?|sure|thanks?|thank you|cheers|please|not sure"
    r"|(?:i )?(?:don't|do not) (?:know|mind|remember|care)|no idea"
    r"|maybe|perhaps|probably|depends|it depends|i guess|why|skip|whatever|anything|either"
    r"|never ?mind|later|hm+|lol|haha\w*|yes and no|(?:kind|sort) of|almost|hardly|barely|not (?:much|many|yet sure)"
    r"|good question|let me|hello|hi|bye|stop|nothing (?:else|more|for now)|that's (?:all|it|fine)|sounds)\b"
    r"|^(?:不知道|不清楚|不确定|不记得|再说|谢|好[的啊吧]?|哦|随便|看情况|算了|没什么|没事|不用|不必|都行|都可以|可能|也许|无所谓|忘了|你好)",
    re.IGNORECASE,
)
# An offer or a request, whose answer tells what is to be done and not what is so.
_OFFERS = re.compile(
    r"\b(?:i|me|my|mine|we|us|our|let's|shall|would|could|can|will|should|may|need|want|right|correct|ready|sure)\b",
    re.IGNORECASE,
)
# Questions about what was shown or meant, or about the moment, whose answers are true for no longer.
_OF_TALK = re.compile(
    r"\bdo you (?:still )?(?:think|mean|say|suggest|see|understand|know|remember|agree|accept|feel|hear|get|mind|notice"
    r"|recall|guess|hope|believe|wish)\b|\bare you (?:sure|there|ready|ok|okay|done|aware|able|talking|asking|saying"
    r"|still)\b"
    r"|\b(?:it|this|that|these|those|there|one|ones)\b"
    r"|\b(?:eaten|sleep|slept|tried|seen|finished|checked|received|today|tonight|just|minute|moment|second|time for"
    r"|questions?|ideas?|comments?|doubts?|plans?)\b",
    re.IGNORECASE,
)
_HAN_EVADES = re.compile(
    r"[不没无]|^(?:保密|猜|秘密|太|还|就|也|都|随|看|问|别|先|有点|因|要|如果|怎么|什么|谁|哪|好|嗯|挺|很)|[\uff0c,]"
)
# Replies to a question for a value that name none, and secrets, which no statement repeats.
_EVADES = re.compile(
    r"^(?:not|none|no|never|nothing|nobody|nowhere|every\w+|any\w+|some(?:where|one|body|thing|times)|guess|ask|call"
    r"|quit|long story|secret|private|classified|confidential|kidding|joking|it|same"
    r"|the (?:usual|same|latter|former|first|second|last)|as|because|if|when|why|who|what|how|where|please|let|wait"
    r"|take|give|go|stop|next|good|great|fine|bad|well|too|so|very|really|just|complicated|you|your|other|more|less|now|then"
    r"|here|there|out|away|off|up|down|yesterday|today|tomorrow|tonight|retired|only (?:kidding|joking)|all|both"
    r"|neither|whatever|depends|we'll|tbd|n/a)\b|\b(?:any ?more|kidding|lol)$",
    re.IGNORECASE,
)
_SECRET = re.compile(r"\b(?:pass\w*|pin|secret|codes?|tokens?|keys?)\b|密码|口令|验证码|密钥", re.IGNORECASE)
_TWO = re.compile(
    r"[,;\uff0c\uff1b]|\b(?:and|or) (?:what|where|who|when|how|which|why|do|are|is|have)\b", re.IGNORECASE
)
_NUMBER = r"(?:\d[\d.,]*|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|a couple|several|half an?)"
_IS_NUMBER = re.compile(
    rf"^(?:about |around |only |almost )?{_NUMBER}(?: (?:and a half|months?|years?)(?: old)?)?$", re.IGNORECASE
)
_IS_SPAN = re.compile(
    rf"^(?:since .+|(?:for )?(?:about |around |almost )?{_NUMBER} (?:days?|weeks?|months?|years?)(?: now)?)$", re.I
)
_IS_RHYTHM = re.compile(
    r"\b(?:once|twice|times|every|daily|weekly|monthly|yearly|(?:a|per|each) (?:day|week|month|year))\b", re.I
)
_BEFORE_PLACE = (
    r"(?:in|at|on|near|from|to|by|outside|inside|around|under|with|next|downtown|abroad|close|across|between|above|behind"
    r"|north|south|east|west)\b"
)
_PLACED = re.compile(rf"^{_BEFORE_PLACE}", re.IGNORECASE)
_IS_PLACE = re.compile(
    rf"^(?!\w+ing$)(?:{_BEFORE_PLACE}.*|(?:[A-Z][\w'.-]*|of|de|la|the)(?:,? (?:[A-Z][\w'.-]*|of|de|la|the))*)$"
)
_IS_NAME = re.compile(r"^(?!\w+ing$)(?:[A-Z][\w'.-]*(?: [A-Z][\w'.-]*){0,3}|(?:my|an?|our) .+)$")
_IS_TIME = re.compile(
    r"\d|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b(?:noon|midnight|january|february|march|april|may|june|july"
    r"|august|september|october|november|december|spring|summer|autumn|winter)\b"
    rf"|^(?:at )?{_NUMBER}\b",
    re.IGNORECASE,
)
_ANY = re.compile(r".")
_HAN_NUMBER = re.compile(r"^[一二两三四五六七八九十百几\d]+[个只条口位辆套]?$")
_HAN_OFFERS = re.compile(r"我|咱|要不要|需要|想不想|想要|可以吗|行吗|好吗|对吗|是吗|准备好")
_LEAD = re.compile(r"^(?:(?:and|so|but|also|by the way|btw|then|now|great|nice|okay|ok)[,!]? )+", re.IGNORECASE)
_HAN_LEAD = re.compile(r"^(?:那么?|请问|对了|顺便问一下|另外)[\uff0c,]?")
_NAMING = re.compile(
    r"^(?:(?:it|he|she|they|that|there)(?:'s| is| was|'re| are|'ve) |(?:called|named|still|just|now) )+"
    r"|^(?:它|他|她)?(?:们)?(?:是|叫|在|就是)(?=\S{2})",
    re.IGNORECASE,
)
_NO_NAME = re.compile(  # a first word whose capital is that of a sentence
    r"^(?:An?|The|In|At|On|Near|From|To|By|About|Since|For|One|Two|Three|Four|Five|Six|Seven|Eight|Nine|Ten"
    r"|My|Some|Only|Every|Once|Twice|Next|This|Last|Today|Tomorrow|Tonight|Always|Never|Mostly|Usually|All|Both)\b"
)
_SPEAKER = re.compile(r"\b(?:i|i'm|i've|i'd|i'll|my|we|our)\b|[我咱]", re.IGNORECASE)
_IS_SENTENCE = re.compile(  # it states something of its own subject
    r"\b(?:i|you|he|she|they|we|is|are|was|were|am|has|have|had|will|would|can|does|did)\b|n't\b|'(?:re|ve|ll)\b|[,;] "
    r"|[我你他她它，；]",
    re.IGNORECASE,
)
LONGEST_VALUE, LONGEST_HAN_VALUE = 60, 12  # characters
_NOW = re.compile(r" (?:now|nowadays|currently|at the moment|these days|at present)$", re.IGNORECASE)
_CHOICE = re.compile(r"\bor\b|还是")
_OWN = {"you": "me", "your": "my", "yours": "mine", "yourself": "myself"}
_POSSESSIVE = re.compile(r"\b(?:you|yours?|yourself)\b", re.IGNORECASE)


def _compile(*pairs: tuple[str, str]) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(pattern, re.IGNORECASE), form) for pattern, form in pairs)


_PREDICATE = (
    r"\w+|(?:an?|the|called|from|in|at|on|very|older|younger|allergic|interested) .+"  # after a subject of one word
)
# Questions that yes or no answers, each with what both state.
_ASKED_YES = _compile(
    (r"do you(?P<how> still| also| really)? (?P<rest>(?!ever\b).+)", "I{how} {rest}"),
    (r"do you ever (?P<rest>.+)", "I sometimes {rest}"),
    (r"are you (?P<rest>.+)", "I am {rest}"),
    (r"have you (?:ever )?(?P<rest>.+)", "I have {rest}"),
    (r"did you (?P<rest>.+)", "I did {rest}"),
    (rf"is your (?P<what>\w+) (?P<rest>{_PREDICATE})", "My {what} is {rest}"),
    (rf"are your (?P<what>\w+) (?P<rest>{_PREDICATE})", "My {what} are {rest}"),
)
_ASKED_NO = _compile(
    (r"do you (?:ever )?(?P<rest>.+)", "I don't {rest}"),
    (r"are you (?P<rest>.+)", "I am not {rest}"),
    (r"have you (?:ever )?(?P<rest>.+)", "I have not {rest}"),
    (r"did you (?P<rest>.+)", "I did not {rest}"),
    (rf"is your (?P<what>\w+) (?P<rest>{_PREDICATE})", "My {what} is not {rest}"),
    (rf"are your (?P<what>\w+) (?P<rest>{_PREDICATE})", "My {what} are not {rest}"),
)
# Questions for a value: what is a value, and what it states. place, years, span: the value as one.
_ASKED_VALUE = tuple(
    (re.compile(pattern, re.IGNORECASE), kind, form)
    for pattern, kind, form in (
        (r"where are you (?:originally )?(?P<rest>from)", _IS_PLACE, "I am {place}"),
        (r"where do you (?P<rest>.+)", _IS_PLACE, "I {rest} {place}"),
        (r"where(?:'s| is) your (?P<what>.+)", _IS_PLACE, "My {what} is {place}"),
        (r"what do you do for (?:a living|work)", _ANY, "My job is {said}"),
        (r"what time is your (?P<what>.+)", _IS_TIME, "My {what} is at {said}"),
        (r"what time do you (?P<rest>.+)", _IS_TIME, "I {rest} at {said}"),
        (r"who(?:'s| is) your (?P<what>.+)", _IS_NAME, "My {what} is {said}"),
        (r"what(?:'s| is) your (?P<what>(?:\w+'s )?name)", _IS_NAME, "My {what} is {said}"),
        (r"what(?:'s| is) your (?P<what>.+) (?P<how>called|named)", _IS_NAME, "My {what} is {how} {said}"),
        (r"what(?:'s| is) the name of your (?P<what>.+)", _IS_NAME, "My {what} is called {said}"),
        (r"what are your (?P<what>.+)", _ANY, "My {what} are {said}"),
        (r"what(?:'s| is) your (?P<what>.+)", _ANY, "My {what} is {said}"),
        (
            r"what are you (?P<rest>allergic to|afraid of|interested in|good at|learning|studying)",
            _ANY,
            "I am {rest} {said}",
        ),
        (r"who do you (?P<rest>.+)", _IS_NAME, "I {rest} {said}"),
        (r"how old are you", _IS_NUMBER, "I am {years}"),
        (r"how old is your (?P<what>.+)", _IS_NUMBER, "My {what} is {years}"),
        (r"how many (?P<what>.+?) do you (?P<rest>.+)", _IS_NUMBER, "I {rest} {said} {what}"),
        (r"how often do you (?P<rest>.+)", _IS_RHYTHM, "I {rest} {said}"),
        (r"how long have you (?P<rest>.+)", _IS_SPAN, "I have {rest} {span}"),
        (r"when(?:'s| is) your (?P<what>.+)", _IS_TIME, "My {what} is {said}"),
        (r"do you have (?:any )?(?P<rest>.+)", _ANY, "I have {rest}: {said}"),
        (r"(?:what|which)(?: [\w'-]+){1,3}? do you (?P<rest>\w+)", _ANY, "I {rest} {said}"),
        (r"what do you (?P<rest>\w+)", _ANY, "I {rest} {said}"),
    )
)
_HAN_VALUE = re.compile(
    r"什么时候|哪一?天|几[号点]|星期几|周几|几月|什么地方|哪[里儿]|谁|多大|几岁|(?P<unit>几[个只条口位辆套])|多少|(?<!做)(?<!干)什么$"
    r"|什么(?:工作|职业|专业|名字|颜色|运动|语言|水果|菜|书|车|宠物|动物|乐器|口味)$|(?<=对)什么|啥$|哪[\u4e00-\u9fff]{1,3}$"
)
_HAN_SUBJECT = re.compile(r"我们?(?:家|的?[\u4e00-\u9fff]{1,2}(?=有|是|会))?")
_HAN_TWICE = re.compile(r"(?P<verb>[\u4e00-\u9fff]{1,2}?)[不没](?P=verb)")


def may_reply(text: str) -> bool:
    """Return whether a text may be a reply, which states something only together with what precedes it."""
    said = text.strip()
    if not said or len(said) > LONGEST_REPLY or "\n" in said or is_question(said) or _SAYS_NOTHING.match(said):
        return False
    return _SPEAKER.search(said) is None or not states_something(said)


def read_reply(before: str, reply: str) -> str | None:
    """Return what a reply states, in the words of the only question of the message before it, which ends it; None if it
    answers none, or states nothing for certain.
    """
    question, said = _find_question(before), reply.strip().replace("\u2019", "'").rstrip(".!\u3002\uff01 ")
    if not question or not said or not may_reply(reply) or _SECRET.search(question):
        return None
    if _CHOICE.search(question):
        return _quote_choice(question, said)
    if _TWO.search(question):
        return None
    if language_of(question) == "zh":
        return None if _HAN_OFFERS.search(question) else _state_in_chinese(question, said)
    is_other = _OFFERS.search(question) or _OF_TALK.search(question)
    return None if is_other else _state_in_english(question, said)


def _find_question(text: str) -> str:
    """Return the only question of a text, if it ends it, without what leads to it and its mark."""
    parts = sentences(text)
    last = (parts or [""])[-1].replace("\u2019", "'")
    if len(last) > LONGEST_QUESTION or [part for part in parts if is_question(part)] != parts[-1:]:
        return ""
    return _NOW.sub("", _HAN_LEAD.sub("", _LEAD.sub("", last)).rstrip("?\uff1f.! "))


def _state_in_english(question: str, said: str) -> str | None:
    if found := _NO.match(said):
        stated = _apply_form(_ASKED_NO, question)
        return f"{stated}." if stated and found.end() == len(said) else None
    if found := _YES.match(said):
        stated, rest = _apply_form(_ASKED_YES, question).replace(" any ", " ", 1), said[found.end() :]
        if not stated or not rest:
            return f"{stated}." if stated else None
        if not (value := _read_value(rest)):
            return None
        if stated.startswith("I have "):
            return f"{stated}: {value}."
        return f"{stated} {value}." if _PLACED.match(value) else None
    value = _read_value(said)
    stated = value and _apply_value(question, _NO_NAME.sub(lambda found: found[0].lower(), value))
    return f"{stated}." if stated else None


def _read_value(said: str) -> str:
    """Return the value that a reply names, without "it's" before it; empty if it is a sentence, or evades."""
    value = _NAMING.sub("", said)
    return "" if len(value) > LONGEST_VALUE or _IS_SENTENCE.search(value) or _EVADES.search(value) else value


def _apply_form(forms: tuple[tuple[re.Pattern[str], str], ...], question: str) -> str:
    for pattern, form in forms:
        if found := pattern.fullmatch(question):
            return form.format(**_name_parts(found))
    return ""


def _apply_value(question: str, said: str) -> str:
    for pattern, kind, form in _ASKED_VALUE:
        if found := pattern.fullmatch(question):
            if not kind.search(said):
                return ""
            parts = _name_parts(found)
            place = said if _PLACED.match(said) else f"{'from' if parts.get('rest') == 'from' else 'in'} {said}"
            years = f"{said} years old" if said.isdecimal() else said
            span = said if said.startswith(("for ", "since ")) else f"for {said}"
            return form.format(said=said.removeprefix("at "), place=place, years=years, span=span, **parts)
    return ""


def _name_parts(found: re.Match[str]) -> dict[str, str]:
    return {
        name: _POSSESSIVE.sub(lambda word: _OWN[word[0].casefold()], part or "")
        for name, part in found.groupdict().items()
    }


def _state_in_chinese(question: str, said: str) -> str | None:
    asked = question.replace("你", "我").replace("您", "我")
    twice, is_asked = _HAN_TWICE.search(asked), asked.endswith(("吗", "嗎"))
    if twice or is_asked:
        told = _HAN_TWICE.sub(lambda at: at["verb"], asked).rstrip("吗嗎")
        if "不" in told or "没" in told:
            return None
        if _HAN_YES.match(said) or (twice and said == twice["verb"]):
            return f"{told}。"
        return f"{_deny(told)}。" if _HAN_NO.match(said) else None
    place, value = _HAN_VALUE.search(asked), _NAMING.sub("", said)
    if place is None or len(value) > LONGEST_HAN_VALUE or _IS_SENTENCE.search(value) or _HAN_EVADES.search(value):
        return None
    head, rest = asked[: place.start()], asked[place.end() :]
    for length in (2, 1):  # 你住在哪里？住在杭州
        value = value.removeprefix(head[-length:])
    if place["unit"]:
        if not _HAN_NUMBER.match(value):
            return None
        value += "" if value[-1] in place["unit"] else place["unit"][1]
    value = value.removesuffix(rest[:1])  # 你是哪里人？四川人
    return f"{head}{value}{rest}".rstrip("呢啊呀") + "。" if value else None


def _deny(told: str) -> str:
    """Return a Chinese statement with its negation: 我抽烟 → 我不抽烟, 我结婚了 → 我没结婚."""
    subject = _HAN_SUBJECT.match(told)
    head, rest = (subject[0], told[subject.end() :]) if subject else ("", told)
    is_past = rest.startswith("有") or rest.endswith("了") or "过" in rest[:3]
    return f"{head}{'没' if is_past else '不'}{rest.removesuffix('了')}"


def _quote_choice(question: str, said: str) -> str | None:
    """Return a reply that names one of the things between which it had to choose: "tea or coffee", 茶还是咖啡."""
    named = set(content_terms(said))
    if not named or not named <= set(content_terms(question)):
        return None
    is_chinese = language_of(question) == "zh"
    return f"被问“{question}”：{said}。" if is_chinese else f"Asked “{question}”: {said}."
