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
    r"^(?:yes|yeah|yep|yup|of course|definitely|absolutely|correct|exactly|right|i do|i am|i have|i did)\b"
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
    r"|\b(?:eaten|sleep|slept|tried|seen|finished|checked|received|today|tonight|just)\b",
    re.IGNORECASE,
)
_HAN_NOTHING = re.compile(r"^(?:没有?|不|无|都不|都没)")
_HAN_OFFERS = re.compile(r"我|咱|要不要|需要|想不想|想要|可以吗|行吗|好吗|对吗|是吗|准备好")
_LEAD = re.compile(r"^(?:(?:and|so|but|also|by the way|btw|then|now|great|nice|okay|ok)[,!]? )+", re.IGNORECASE)
_HAN_LEAD = re.compile(r"^(?:那么?|请问|对了|顺便问一下|另外)[\uff0c,]?")
_NAMING = re.compile(
    r"^(?:(?:it|he|she|they|that|there)(?:'s| is| was|'re| are|'ve) |(?:called|named|still|just|now) )+"
    r"|^(?:它|他|她)?(?:们)?(?:是|叫|在|就是)(?=\S{2})",
    re.IGNORECASE,
)
_PLACED = re.compile(
    r"^(?:in|at|on|near|from|to|by|outside|inside|around|under|with|next|downtown|abroad|close|across|between|above|behind|north"
    r"|south|east|west)\b",
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
LONGEST_VALUE = 60  # characters
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
# Questions for a value, each with what a value states. place, years, span: the value as one.
_ASKED_VALUE = _compile(
    (r"where are you (?:originally )?(?P<rest>from)", "I am {place}"),
    (r"where do you (?P<rest>.+)", "I {rest} {place}"),
    (r"where(?:'s| is| are) your (?P<what>.+)", "My {what} is {place}"),
    (r"what do you do(?: for (?:a living|work))?", "My job is {said}"),
    (r"what time is your (?P<what>.+)", "My {what} is at {said}"),
    (r"(?:what|who) are your (?P<what>.+?)(?P<how> called| named)?", "My {what} are{how} {said}"),
    (r"(?:what|who)(?:'s| is) your (?P<what>.+?)(?P<how> called| named)?", "My {what} is{how} {said}"),
    (r"what are you (?P<rest>allergic to|afraid of|interested in|good at|learning|studying)", "I am {rest} {said}"),
    (r"who do you (?P<rest>.+)", "I {rest} {said}"),
    (r"how often do you (?P<rest>.+)", "I {rest} {said}"),
    (r"do you have (?:any )?(?P<rest>.+)", "I have {rest}: {said}"),
    (r"what(?:'s| is) the name of your (?P<what>.+)", "My {what} is called {said}"),
    (r"how old are you", "I am {years}"),
    (r"how old is your (?P<what>.+)", "My {what} is {years}"),
    (r"how many (?P<what>.+?) do you (?P<rest>.+)", "I {rest} {said} {what}"),
    (r"how long have you (?P<rest>.+)", "I have {rest} {span}"),
    (r"when(?:'s| is| are) your (?P<what>.+)", "My {what} is {said}"),
    (r"when do you (?P<rest>.+)", "I {rest} {said}"),
    (r"(?:what|which)(?: [\w'-]+){0,3}? do you (?P<rest>.+)", "I {rest} {said}"),
)
_HAN_VALUE = re.compile(
    r"什么时候|哪一?天|几[号点]|星期几|周几|几月|什么地方|哪[里儿]|谁|多大|几岁|(?P<unit>几[个只条口位辆套])|多少|(?<!做)(?<!干)什么$"
    r"|什么(?:工作|职业|专业|名字|颜色|运动|语言|水果|菜|书|车|宠物|动物|乐器|口味)$|(?<=对)什么|啥$|哪[\u4e00-\u9fff]{1,3}$"
)
_HAN_SUBJECT = re.compile(r"我们?(?:家|的?[\u4e00-\u9fff]{1,2}(?=有|是|会))?")
_HAN_TWICE = re.compile(r"(?P<verb>[\u4e00-\u9fff])[不没](?P=verb)")


def may_reply(text: str) -> bool:
    """Return whether a text may be a reply, which states something only together with what precedes it."""
    said = text.strip()
    if not said or len(said) > LONGEST_REPLY or "\n" in said or is_question(said) or _SAYS_NOTHING.match(said):
        return False
    return _SPEAKER.search(said) is None or not states_something(said)


def read_reply(before: str, reply: str) -> str | None:
    """Return what a reply states, in the words of the question at the end of the message before it; None if it answers
    none, or states nothing.
    """
    question, said = _last_question(before), reply.strip().replace("\u2019", "'").rstrip(".!\u3002\uff01 ")
    if not question or not said or not may_reply(reply):
        return None
    if language_of(question) == "zh":
        return None if _HAN_OFFERS.search(question) else _state_in_chinese(question, said)
    is_other = _OFFERS.search(question) or _OF_TALK.search(question)
    return None if is_other else _state_in_english(question, said)


def _last_question(text: str) -> str:
    """Return the question that ends a text, without what leads to it and its mark."""
    last = (sentences(text) or [""])[-1].replace("\u2019", "'")
    if not is_question(last) or len(last) > LONGEST_QUESTION:
        return ""
    return _NOW.sub("", _HAN_LEAD.sub("", _LEAD.sub("", last)).rstrip("?\uff1f.! "))


def _state_in_english(question: str, said: str) -> str | None:
    is_choice = _CHOICE.search(question)
    for pattern, forms, joined in ((_NO, _ASKED_NO, ", "), (_YES, _ASKED_YES, ": ")):
        if not is_choice and (found := pattern.match(said)):
            rest = said[found.end() :]
            stated = _apply_form(forms, question)
            stated = stated.replace(" any ", " ", 1) if forms is _ASKED_YES else stated
            between = " " if forms is _ASKED_YES and _PLACED.match(rest) else joined
            return f"{stated}{between}{rest}." if stated and rest else f"{stated}." if stated else None
    value = _read_value(said)
    stated = value and _apply_form(_ASKED_VALUE, question, _NO_NAME.sub(lambda found: found[0].lower(), value))
    return f"{stated}." if stated else _quote_question(question, said)


def _read_value(said: str) -> str:
    """Return the value that a reply names, without "it's" before it; empty if it is a sentence of its own."""
    value = _NAMING.sub("", said)
    return "" if len(value) > LONGEST_VALUE or _IS_SENTENCE.search(value) else value


def _apply_form(forms: tuple[tuple[re.Pattern[str], str], ...], question: str, said: str = "") -> str:
    for pattern, form in forms:
        if found := pattern.fullmatch(question):
            parts = {name: _POSSESSIVE.sub(_name_own, part or "") for name, part in found.groupdict().items()}
            place = said if _PLACED.match(said) else f"{'from' if parts.get('rest') == 'from' else 'in'} {said}"
            years = said if "year" in said or not said.isdecimal() else f"{said} years old"
            span = said if said.startswith(("for ", "since ")) else f"for {said}"
            return form.format(said=said, place=place, years=years, span=span, **parts)
    return ""


def _name_own(found: re.Match[str]) -> str:
    return _OWN[found[0].casefold()]


def _state_in_chinese(question: str, said: str) -> str | None:
    asked = question.replace("你", "我").replace("您", "我")
    twice, is_asked = _HAN_TWICE.search(asked), asked.endswith(("吗", "嗎"))
    if "还是" not in asked and (twice or is_asked):
        told = _HAN_TWICE.sub(lambda at: at["verb"], asked).rstrip("吗嗎")
        if _HAN_YES.match(said) or (twice and said == twice["verb"]):
            return f"{told}。"
        return f"{_deny(told)}。" if _HAN_NO.match(said) else _quote_question(question, said)
    place, value = None if "还是" in asked else _HAN_VALUE.search(asked), _read_value(said)
    if place is None or not value or _HAN_NOTHING.match(value):
        return _quote_question(question, said)
    if place["unit"] and place["unit"][1] not in value:
        value += place["unit"][1]
    rest = asked[place.end() :]
    value = value.removesuffix(rest[:1])  # 你是哪里人？四川人
    return f"{asked[: place.start()]}{value}{rest}".rstrip("呢啊呀") + "。"


def _deny(told: str) -> str:
    """Return a Chinese statement with its negation: 我抽烟 → 我不抽烟, 我结婚了 → 我没结婚."""
    subject = _HAN_SUBJECT.match(told)
    head, rest = (subject[0], told[subject.end() :]) if subject else ("", told)
    is_past = rest.startswith("有") or rest.endswith("了") or "过" in rest[:3]
    return f"{head}{'没' if is_past else '不'}{rest.removesuffix('了')}"


def _quote_question(question: str, said: str) -> str | None:
    """Return a reply after the choice that it was asked to make: "tea or coffee", 茶还是咖啡."""
    if not content_terms(said) or not _CHOICE.search(question):
        return None
    is_chinese = language_of(question) == "zh"
    return f"被问“{question}”：{said}。" if is_chinese else f"Asked “{question}”: {said}."
