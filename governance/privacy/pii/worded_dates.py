"""Dates in words, with Roman months, and of the Chinese calendar: `the third of May nineteen sixty-one`, 六月初八."""

import re
from collections.abc import Iterator

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MONTH = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
HAN_DIGITS = {digit: value for value, digit in enumerate("〇一二三四五六七八九")} | {"零": 0, "○": 0}
_ONES = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEENS = (
    "ten",
    "eleven",
    "twelve",
    *(f"{word}teen" for word in ("thir", "four", "fif", "six", "seven", "eigh", "nine")),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_FIRST = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
_ORDINALS = (*_FIRST, "tenth", "eleventh", "twelfth", *(f"{word}th" for word in _TEENS[3:]), "twentieth")
_NUMBERS = {word: value for value, word in enumerate([*_ONES, *_TEENS], 1)} | {
    word: 10 * value for value, word in enumerate(_TENS, 2)
}
_ORDERS = {word: value for value, word in enumerate(_ORDINALS, 1)} | {"thirtieth": 30}
_ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii")
_ONE = f"(?:{'|'.join(_ONES)})"
_ROUND = f"(?:(?:{'|'.join(_TENS)})(?:[ -]{_ONE})?|{'|'.join(_TEENS)})"  # 10 to 99
_YEAR = (
    rf"(?:(?:eighteen|nineteen)(?:[ -](?:{_ROUND}|(?:oh|o)[ -]{_ONE})"
    rf"|[ -]hundred(?:[ -](?:and[ -])?(?:{_ROUND}|{_ONE}))?)"
    rf"|twenty[ -](?:{_ROUND}|(?:oh|o)[ -]{_ONE})"
    rf"|two[ -]thousand(?:[ -](?:and[ -])?(?:{_ROUND}|{_ONE})(?![ -](?:hundred"
    r"|thousand|million)))?)(?![a-z])"
)
_ANY_YEAR = rf"(?:{_YEAR}|[12][0-9]{{3}}(?![0-9])|['’][0-9]{{2}}(?![0-9]))"
_ORDER = rf"(?:(?:twenty|thirty)[ -](?:{'|'.join(_FIRST)})|{'|'.join(_ORDERS)})(?![a-z])"
_DAY = rf"(?:{_ORDER}|[0-3]?[0-9](?:st|nd|rd|th))"
_IN = r"(?:,? (?:of |in |in the year )?)"
_HAN_NUMBER = "[一二三四五六七八九十]{1,3}"
_HAN_DAY = "(?:[0-9]{1,2}|初[一二三四五六七八九十]|[廿卅][一二三四五六七八九]?|[一二三]?十[一二三四五六七八九]?)"
WORDED_DATE = re.compile(
    rf"(?<![a-z0-9])(?P<day>{_DAY})(?: day)? of (?:the (?P<order>{_ORDER}) month|(?P<month>{MONTH}))"
    rf"(?:{_IN}(?P<year>{_ANY_YEAR}))?"
    rf"|(?<![a-z0-9])(?P<month2>{MONTH}) (?P<the>the )?(?P<day2>{_ORDER})(?:,? (?P<year2>{_ANY_YEAR}))?"
    rf"|(?<![a-z0-9])(?:(?P<day3>[0-3]?[0-9]) )?(?P<month3>{MONTH}),? (?:of )?"
    rf"(?P<year3>{_YEAR}|['’][0-9]{{2}}(?![0-9]))"
    r"|(?<![a-z0-9])(?P<day4>[0-3]?[0-9])(?P<by>[-./ ])\s?(?P<roman>viii|vii|vi|v|iv|iii|ii|ix|i|xii|xi|x)(?P=by)\s?"
    r"(?P<year4>[12][0-9]{3}|['’]?[0-9]{2})(?![0-9a-z])"
    r"|(?<![0-9a-z.,/-])(?P<day5>[0-3][0-9])(?P<month5>[01][0-9])(?P<year5>(?:19|20)[0-9]{2})(?![0-9a-z])"
    rf"|(?:(?P<year6>[〇○零一二三四五六七八九]{{2,4}}|[0-9]{{2,4}})年)?(?P<lunar>(?:[农農阴陰]历|[农農陰]曆)?)[闰閏]?"
    rf"(?P<month6>[正冬腊臘]|[0-9]{{1,2}}|{_HAN_NUMBER})月(?P<day6>{_HAN_DAY})(?![0-9日号號天个個点點])"
    r"|(?<![0-9〇○零一二三四五六七八九十百千万])(?P<year7>[〇○零一二三四五六七八九]{2}|[0-9]{2})年"
    rf"(?=出?生(?![^\s。，,；;、）)的人于於])|[0-9]{{1,2}}月|{_HAN_NUMBER}月)"
    rf"(?:(?P<month7>[0-9]{{1,2}}|{_HAN_NUMBER})月(?:(?P<day7>{_HAN_DAY})[日号號]?)?)?"
    rf"|(?<![a-z0-9])(?P<year8>{_YEAR})|(?<![^\W_])['’](?P<year9>[0-9]{{2}})(?![^\W_])"
    rf"|民[国國][一二三四五六七八九十]{{1,3}}年|[甲乙丙丁戊己庚辛壬癸][子丑寅卯辰巳午未申酉戌亥]年(?:{_HAN_NUMBER}月)?"
    r"|(?<![a-z])(?:christmas(?: day| eve)?|new year['’]s (?:day|eve)|halloween)(?![a-z])"
    "|[腊臘]八|除夕|元宵|端午|中秋|重[阳陽]|元旦",
    re.IGNORECASE,
)
_SMALL_MAY = "may"  # `you may first` is no date


def find_worded_dates(text: str) -> Iterator[tuple[int, int, tuple[int, int, int]]]:
    """Yield the start, the end and (year, month, day) of such dates, 0 for what is not written. Linear."""
    for found in WORDED_DATE.finditer(text):
        part = {name.rstrip("0123456789"): value for name, value in found.groupdict().items() if value}
        if part.get("month") == _SMALL_MAY and not (
            {"the", "year"} & part.keys() or found[0].lower().endswith("of may")
        ):
            continue
        month = read_month(part["month"]) if "month" in part else 0
        if "order" in part or "roman" in part:
            month = _read_order(part["order"]) if "order" in part else _ROMAN.index(part["roman"].lower()) + 1
        day = _read_order(part["day"]) if "day" in part else 0
        yield found.start(), found.end(), (_read_year(part["year"]) if "year" in part else 0, month, day)


def read_month(text: str) -> int:
    """Return the number of a month, by name or in digits."""
    name = text[:3].lower()
    if name in MONTHS:
        return MONTHS.index(name) + 1
    return {"正": 1, "冬": 11, "腊": 12, "臘": 12}.get(text) or read_number(text)


def read_number(text: str) -> int:
    """Return the value of digits with an English ending, or of a Chinese number under 100."""
    digits = "".join(character for character in text if character.isascii() and character.isdigit())
    if digits:
        return int(digits)
    text = text.removeprefix("初").replace("廿", "二十").replace("卅", "三十")
    tens, ten, ones = text.rpartition("十")
    return (HAN_DIGITS.get(tens, 1) * 10 if ten else 0) + HAN_DIGITS.get(ones, 0)


def read_year(text: str) -> int:
    """Return the year of two or four digits, which may be Chinese."""
    digits = "".join(str(HAN_DIGITS.get(character, character)) for character in text.lstrip("'’"))
    year = int(digits)
    return year if len(digits) > 2 else year + (2000 if year <= 30 else 1900)


def _read_year(text: str) -> int:
    if not text[0].isalpha() or text[0] in HAN_DIGITS:
        return read_year(text)
    words = [word for word in text.lower().replace("-", " ").split() if word not in {"and", "oh", "o"}]
    if words[:2] == ["two", "thousand"]:
        return 2000 + sum(_NUMBERS[word] for word in words[2:])
    return 100 * _NUMBERS[words[0]] + sum(_NUMBERS[word] for word in words[1:] if word != "hundred")


def _read_order(text: str) -> int:
    words = text.lower().replace("-", " ").split()
    if words[-1] in _ORDERS:
        return sum(_ORDERS.get(word, 0) or _NUMBERS[word] for word in words)
    return read_number(text)
