"""Measures each function of `text_functions` on texts made to be slow, at two lengths."""

import random
import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.tables import markdown
from benchmarks.text_functions import FUNCTIONS, TextFunction

LENGTH = 32_000  # characters of the longest memory
SEED = 20261123
SHORT = LENGTH // 8
SLOWEST = 8  # texts of each function whose growth is measured, by their time when they are SHORT
REPEATS = 2
NOTICED_MS = 10.0  # below this a growth is noise
MOST_GROWTH = 2.5  # of processor time, for a text twice as long

CUT = "¦"  # between two pieces
CLASSES = (
    "a¦A¦z¦1¦9¦ ¦.¦!¦?¦,¦;¦:¦-¦_¦'¦\"¦`¦*¦~¦|¦/¦\\¦@¦#¦&¦$¦%¦+¦=¦^¦(¦)¦[¦]¦{¦}¦<¦>¦\t¦\n¦\r¦é¦e\u0301¦\u0301¦ß¦İ¦ﬃ¦ﷺ¦"
    "Ⅷ¦１¦ｅ¦\u200b¦\u2028¦🙂¦🇩¦अ¦א¦中¦王¦一¦十¦月¦年¦日¦上¦吗¦的¦。¦！¦“¦《¦「¦·¦あ¦ア¦한¦ก"
).split(CUT)
# Beginnings of matches of the patterns, to be repeated, and texts that fail to match only at their end.
NEAR_MATCHES = (
    "1 ¦1. ¦1-¦1/¦1(¦12 ¦123 ¦1234 ¦1/1/2020 ¦2020-01-01 ¦20 25 55 01 23 ¦1,000,¦13800138000 ¦202 555 0123 ¦"
    "020 7946 0958 ¦tel 20 25 55 01 23 ¦+1 202-555-0143 ¦00 44 20 ¦(020) ¦4111 1111 1111 1111 ¦4111111111111111¦"
    "GB82 WEST 1234 ¦110101199003070¦AB 12 34 56 ¦078-05-1120 ¦1.1.1.1 ¦::1 ¦aa:bb:¦fe80::1 ¦a@¦a@a.¦@a ¦"
    "a@b.example ¦://a:¦sk-¦eyJaaaaaaaa.¦xox¦-----BEGIN PRIVATE KEY-----¦"
    "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\n¦-----END ¦password is ¦key=¦token: aA1bB2cC3dD4¦"
    "secret: ¦key is is is ¦密码是¦http://u:pw@¦a. ¦A. ¦Dr. ¦e.g. ¦a.¦a'¦a-¦A ¦A \"B ¦@ann ¦"
    "老王说¦王小明在¦在北京大学¦阿尔·¦i am ¦i have ¦"
    "we will want ¦i really ¦and so why ¦知道¦什么¦我在¦他们很¦三周前¦十天¦favourite ¦last ¦5 May ¦"
    "May 5-6 ¦in May ¦"
    "two days before ¦day before ¦上个月¦一月一日¦从去年¦in the spring of ¦the last three weeks ¦between May and ¦"
    "q3 of ¦12 May 2020 and ¦no ¦can't wait ¦not never ¦because of that ¦"
    "how many ¦什么时候¦ask a question? ¦haha ¦thanks ¦"
    "wi-fi ¦n't ¦[1]¦[a](¦![¦&amp;¦<a ¦<!--¦# a\n¦> ¦>>>>>>>>>>\n¦- a\n¦- - ¦1) ¦    a\n¦a\n=\n¦**a ¦a**¦*a_¦***a¦_a¦"
    "~~a¦`a¦\\`¦|-|\n¦a|b\n-|-\n¦| a ¦``` ¦\n\n¦a\n¦/a/../"
).split(CUT)
ALPHABETS = (
    *("0123456789 ", "0123456789 ()-./+", "01 .-/()", "13579 ", "abc .!?", "aA1 _-'\".@:/", ".!?\"')] ", " \t\n\r"),
    *(
        "中文王李一二三年月日上下周 。？",
        "[]()*_`~|>#-\n 1a!\\&<",
        "i we am have will do ",
        "é\u0301a ",
        "0123456789abcdef:-. ",
    ),
)
WORDS = (
    "i¦am¦you¦last¦week¦may¦5¦2020¦not¦never¦who¦what¦because¦$¦key¦password¦is¦=¦call¦order¦tel¦我¦什么¦三周¦前¦he¦"
    'loves¦on¦monday¦a¦of¦the¦Ann¦London¦"Dune"¦13800138000¦ada@example.com¦don\'t¦wi-fi¦?¦!¦[1]¦王¦北京'
).split(CUT)


def hostile_texts(length: int) -> Iterator[tuple[str, str]]:
    """Yield names and texts of `length` characters, the same in every run."""
    for piece in (*CLASSES, *NEAR_MATCHES):
        yield f"repeated {piece!r}", _repeat(piece, length)
    for piece in CLASSES:
        yield f"repeated {piece!r}, then a letter", _repeat(piece, length - 1) + "x"
    for left, right in (("(", "1"), (".", " "), ("?", "?"), (" ", "a"), ("1", "("), ("“", "”"), ("中", "a")):
        half = length // 2
        yield f"half {left!r}, half {right!r}", _repeat(left, half) + _repeat(right, length - half)
        yield f"{left!r} and {right!r} in turns", _repeat(left * 63 + right, length)
    yield "a number and parentheses", "1234567 1" + "(" * (length - 9)
    yield "numbers and parentheses", _repeat("1234567 1" + "(" * 64, length)
    chance = random.Random(SEED)
    for alphabet in ALPHABETS:
        yield f"any of {alphabet!r}", "".join(chance.choices(alphabet, k=length))
    begin, end = "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"
    for last in ("", "-----END ", end, f"中{end}"):
        yield f"keys that end with {last!r}", _repeat(begin, length - len(last)) + last
    yield "words", " ".join(chance.choices(WORDS, k=length))[:length]
    yield "numbers", " ".join(str(chance.randrange(10 ** chance.randint(1, 6))) for _ in range(length))[:length]


def _repeat(piece: str, length: int) -> str:
    return (piece * (length // len(piece) + 1))[:length]


def processor_seconds(run: Callable[[str], object], text: str) -> float:
    """Return the processor time of this process for one run."""
    started = time.process_time()
    run(text)
    return time.process_time() - started


def hostile_texts_benchmark() -> dict[str, Any]:
    """Return the slowest text and the largest growth of time for each function."""
    half, whole = dict(hostile_texts(LENGTH // 2)), dict(hostile_texts(LENGTH))
    return {
        "length": LENGTH,
        "texts": len(whole),
        "functions": {function.name: _figures(function, half, whole) for function in FUNCTIONS},
    }


def hostile_texts_table(figures: dict[str, Any]) -> str:
    rows = [
        [name, figure["slowest ms"], figure["slowest text"], figure["growth"], figure["growing text"]]
        for name, figure in figures["functions"].items()
    ]
    return markdown(["function", "slowest ms", "text", f"growth (at most {MOST_GROWTH})", "text"], rows)


def _figures(function: TextFunction, half: dict[str, str], whole: dict[str, str]) -> dict[str, Any]:
    """Measure one function. growth: time ratio for doubled length, the largest of the SLOWEST texts above the noise."""
    function.run("words of 12 May, 中文")  # loads dictionaries before the measurement
    short = {name: processor_seconds(function.run, text) for name, text in hostile_texts(SHORT)}
    slow = sorted(short, key=short.__getitem__)[-SLOWEST:]
    taken = {name: _milliseconds(function, whole[name]) for name in slow}
    growths = {name: ms / _milliseconds(function, half[name]) for name, ms in taken.items() if ms >= NOTICED_MS}
    slowest, growing = max(taken, key=taken.__getitem__), max(growths, key=growths.__getitem__, default="")
    return {
        "slowest ms": round(taken[slowest], 1),
        "slowest text": _cell(slowest),
        "growth": round(growths[growing], 2) if growing else None,
        "growing text": _cell(growing),
    }


def _milliseconds(function: TextFunction, text: str) -> float:
    return max(min(processor_seconds(function.run, text) for _ in range(REPEATS)) * 1_000, 0.001)


def _cell(name: str) -> str:
    """Escape `name` for a Markdown table."""
    return name.replace("|", "\\|")
