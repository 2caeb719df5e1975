"""Goals that a question touches: food and losing weight, buying and saving money. Pure."""

import re
from collections.abc import Sequence

_LINKS = tuple(
    (re.compile(goal, re.IGNORECASE), re.compile(question, re.IGNORECASE))
    for goal, question in (
        (
            r"\b(?:lose (?:some )?weight|diet|slim|fewer calories|eat (?:less|healthi\w+)|get in shape|sugar)\b"
            r"|减肥|减重|减掉|瘦|健康饮食|戒糖",
            r"\b(?:burgers?|pizza|fries|cakes?|desserts?|sweets|chocolate|ice cream|snacks?|beer|soda|takeaway"
            r"|restaurants?"
            r"|dinner|lunch|eat|food)\b|汉堡|披萨|薯条|蛋糕|甜点|甜品|巧克力|冰淇淋|零食|奶茶|火锅|烧烤|外卖"
            r"|餐厅|晚饭|午饭|吃",
        ),
        (
            r"\b(?:save (?:up|money)|saving (?:up|money)|budget|spend less)\b|存钱|省钱|攒钱|少花",
            r"\b(?:buy|shopping|order|price|expensive|cost|subscription)\b|买|下单|购物|多少钱|贵",
        ),
        (
            r"\b(?:marathon|run(?:ning)?|fit(?:ness|ter)?|exercise|gym|training)\b|马拉松|跑步|健身|锻炼|徒步",
            r"\b(?:run(?:ning)?|gym|sports?|exercise|weekend plans?|lazy|couch|knee|ankle)\b|跑|健身|运动|锻炼"
            r"|偷懒|膝盖|脚",
        ),
        (
            r"\b(?:quit|stop|give up) (?:smoking|drinking)\b|戒烟|戒酒",
            r"\b(?:cigarettes?|smoke|smoking|bar|beer|wine|whisky)\b|烟|酒",
        ),
        (
            r"\b(?:quit|stop|give up|giving up|less|no more) (?:\w+ )?coffee\b|(?:戒|少喝|不再喝)咖啡",
            r"\b(?:coffee|espresso|latte|cappuccino)\b|咖啡|拿铁",
        ),
        (
            r"\b(?:sleep (?:more|better|earlier)|go to bed)\b|早睡|睡眠",
            r"\b(?:coffee|espresso|late|night|series)\b|咖啡|熬夜|夜里|追剧",
        ),
        (
            r"\blearn(?:ing)? (?:\w+ ){0,2}\w+|学(?:习|会)?\w{1,4}语|学英语",
            r"\b(?:language|course|study|practi[cs]e|speak|exam)\b|语言|课程|练习|考试|口语",
        ),
    )
)


def may_touch_goal(question: str) -> bool:
    """Return whether `question` is about the topic of a goal."""
    return any(asked.search(question) for _, asked in _LINKS)


def find_touched_goal(question: str, goals: Sequence[str]) -> int | None:
    """Return the index of the first of `goals` that `question` touches, or None."""
    for index, goal in enumerate(goals):
        if any(wanted.search(goal) and asked.search(question) for wanted, asked in _LINKS):
            return index
    return None
