"""Facts of which a person has several: likes, hobbies, allergies, pets. Pure.

A question for one of these groups names the group ("what are my hobbies?"), while the statements that answer it name
its members ("I play the violin"), so that neither words nor vectors bring them together.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from vault.layers.statements import find_slot, is_about_self


@dataclass(frozen=True)
class FactGroup:
    """A group of facts about oneself. asked: a question for all of it; holds: whether a statement belongs to it;
    filling: words to search for, beside those of the question; semantic_type: of its statements, if they have one."""

    asked: re.Pattern[str]
    holds: Callable[[str], bool]
    filling: str
    semantic_type: str = ""


def _holds_any(pattern: str) -> Callable[[str], bool]:
    told = re.compile(pattern, re.IGNORECASE)
    return lambda text: told.search(text) is not None


def _is_liked(text: str) -> bool:
    slot = find_slot(text)
    return slot is not None and (slot.name.startswith("favo") or (not slot.is_profile and slot.value == "yes"))


def _is_disliked(text: str) -> bool:
    slot = find_slot(text)
    return slot is not None and not slot.is_profile and slot.value == "no"


def _asked(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_ANIMALS = (
    "dog|puppy|cat|kitten|hamster|rabbit|parrot|budgie|canary|tortoise|turtle|goldfish|fish|gecko|snake|guinea pig|pony"
    "|horse|hens?|greyhound|labrador|terrier|beagle|poodle|spaniel|collie|retriever"
)
_DIETS = "vegetarian|vegan|pescatarian|halal|kosher|gluten|lactose"
_GIVEN_UP = re.compile(
    r"\b(?:no longer|not .{1,60} any ?more|gave up|given up|quit trying|abandoned)\b|放弃|不再|不想.{1,20}了", re.I
)
_GOAL = re.compile(
    r"\b(?:want|wanna|plan|hope|intend|aim|wish|dream|trying|aiming|planning|hoping|saving|training|determined|decided|working)"
    r"(?:ed|s)? (?:to|of|for|on|towards)\b|\b(?:would|'d) (?:like|love) to\b|\bmy (?:\w+ )?(?:goal|dream|aim"
    r"|ambition|resolution|target)s?\b"
    r"|(?:想要?|打算|计划|希望|目标|梦想|决定|争取|立志|准备)",
    re.IGNORECASE,
)


def _is_goal(text: str) -> bool:
    return _GOAL.search(text) is not None and _GIVEN_UP.search(text) is None


GROUPS = (
    FactGroup(
        _asked(
            r"\b(?:what|which|list|tell me|name|remind me of|show(?: me)?)\b.{0,30}\bmy (?:\w+ )?(?:goals?"
            r"|ambitions?|resolutions?|aims?)\W*$"
            r"|\bdo i have (?:any )?goals?\W*$|\bwhat goals? (?:do i have|have i (?:set|got)|am i)\b"
            r"|\bwhat (?:do i want to achieve|am i (?:trying|aiming|hoping) to (?:do|achieve|reach)"
            r"|am i working (?:on|towards?))\W*$"
            r"|我的?(?:都)?(?:有(?:些)?(?:什么|哪些))?(?:目标|心愿|愿望|梦想)(?:都?(?:是|有)(?:些)?(?:什么|哪些))?\W*$|我(?:想|要)(?:实现|达成|完成)(?:些)?什么"
        ),
        _is_goal,
        "I want to I am trying to my goal I plan to I hope to 我想 我打算 我计划 目标 希望",
        semantic_type="goal",
    ),
    FactGroup(
        _asked(
            r"\bmy (?:allergies|allergy|intolerances)\b|\bam i allergic to(?: what| anything| something)?\W*$"
            r"|\bwhat(?: all)? am i allergic\b|我(?:对什么|有什么|有哪些|的)东?西?过敏"
        ),
        _holds_any(r"\ballerg(?:ic|y|ies)\b|\bintoleran|过敏"),
        "allergic allergy intolerant 过敏",
    ),
    FactGroup(
        _asked(
            r"\bmy diet\b|\bwhat (?:kind of |sort of |type of )?(?:foods?|things?|diet)?\s?(?:do|can|may|should|must)"
            r"(?:n't| not)? i (?:not |usually )?eat\W*$|我(?:能|可以|不能|不|平时)吃(?:些)?什么|我(?:的饮食|有什么忌口)"
        ),
        _holds_any(rf"\b(?:{_DIETS})\b|\b(?:don't|can't|cannot|never|only|no longer) eat\b|素食|吃素|[不只]吃|忌口"),
        "vegetarian vegan don't eat can't eat diet 吃素 素食 不吃 忌口",
    ),
    FactGroup(
        _asked(
            r"\bmy (?:hobbies|hobby|interests|pastimes)\b|\bwhat do i do (?:for fun|in my (?:free|spare) time)\b"
            r"|\bwhat am i (?:into|interested in)\W*$|我(?:的|都?有(?:些)?(?:什么|哪些))(?:兴趣|爱好)"
            r"|我(?:平时|业余|空闲时)(?:都|喜欢)*[做干玩](?:些)?什么"
        ),
        _holds_any(
            r"\bi(?:'m| am)? (?:really |also |still |usually |often )*(?:like|love|enjoy|adore|into) \w+ing\b"
            r"|\bi (?:also |still |often )*(?:play|collect|paint|knit|sew|sing|dance|draw|hike|cycle|swim|climb|sail"
            r"|ski|surf|fish|garden|volunteer)\b|\bi(?:'ve| have) (?:been )?(?:learning|taken up)\b"
            r"|\b(?:hobby|hobbies)\b"
            r"|\bin my (?:free|spare) time\b|爱好|兴趣|业余"
            r"|我.{0,6}喜欢[做打踢看听画唱跑爬游骑种拍玩读写弹拉下滑钓跳练]|我.{0,4}(?:收集|收藏)"
        ),
        "hobby enjoy love play collect paint sing learning in my free time 爱好 喜欢 收集 兴趣",
    ),
    FactGroup(
        _asked(
            r"\bwhat (?:else |all |things )?do(?:n't| not) i (?:like|love|enjoy|eat|stand)\W*$"
            r"|\bwhat do i (?:really )?(?:dislike|hate|not like)\W*$|\bmy dislikes\b"
            r"|我都?(?:不喜欢|讨厌)(?:些)?什么\W*$"
        ),
        _is_disliked,
        "hate dislike can't stand don't like 不喜欢 讨厌",
    ),
    FactGroup(
        _asked(
            r"\bwhat (?:else |all |things )?do i (?:really )?(?:like|love|enjoy|prefer)(?: most| best| doing)?\W*$"
            r"|\bmy (?:likes|preferences|favou?rites|favou?rite things)\b"
            r"|我(?:都|最)*喜欢(?:些)?什么\W*$|我的(?:喜好|偏好)"
        ),
        _is_liked,
        "love like enjoy prefer favourite 喜欢 最爱",
    ),
    FactGroup(
        _asked(
            r"\bmy pets?\W*$|\bwhat (?:pets?|animals?) do (?:i|we) (?:have|own|keep)\b"
            r"|我(?:们家)?(?:养|有)了?(?:些)?(?:什么|哪些)(?:宠物|动物)"
        ),
        _holds_any(
            rf"\b(?:my|our|adopted|have|got|keep|own|bought|rescued) (?:\w+ ){{0,2}}(?:{_ANIMALS})s?\b(?! allergy)"
            r"|养了?.{0,4}[狗猫兔鸟鱼龟]|我(?:们)?家?(?:的|有)?.{0,4}[狗猫兔鸟龟]|宠物"
        ),
        "my pet dog cat adopted 宠物 养 狗 猫",
    ),
)


def asked_group(question: str) -> FactGroup | None:
    """Return the group of facts about the asker that a question asks for, or None."""
    told = question.strip().replace("\u2019", "'")
    return next((group for group in GROUPS if group.asked.search(told)), None)


def belongs_to(text: str, group: FactGroup) -> bool:
    """Return whether a statement is about its speaker and tells a fact of the group."""
    told = text.replace("\u2019", "'")
    return group.holds(told) and is_about_self(told)
