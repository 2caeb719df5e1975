"""Secrets: tokens of known services, private keys, passwords in addresses, and values after words such as `key`."""

import re
from collections import Counter
from collections.abc import Iterator
from math import log2

from governance.privacy.pii.pii_ranges import Span
from governance.vocabulary import PiiKind

_AFTER, _BEFORE = r"(?<![A-Za-z0-9_-])", r"(?![A-Za-z0-9_-])"


def _make(pattern: str) -> re.Pattern[str]:
    return re.compile(f"{_AFTER}(?:{pattern}){_BEFORE}")


# Each pattern with a text that must occur before the pattern is tried.
MAKES: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    ("mos_", "memos", _make(r"mos_[0-9a-f]{4,32}_[A-Za-z0-9-]{16,100}")),
    ("sk-", "openai", _make(r"sk-(?:[a-z0-9]{2,12}-){0,2}[A-Za-z0-9_-]{20,200}")),
    ("k_", "stripe", _make(r"[srp]k_(?:live|test)_[A-Za-z0-9]{16,120}")),
    ("gh", "github", _make(r"gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255}")),
    ("glpat-", "gitlab", _make(r"glpat-[A-Za-z0-9_-]{20,64}")),
    ("A", "aws", _make(r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}")),
    ("xox", "slack", _make(r"xox[abeoprs]-[A-Za-z0-9-]{10,250}")),
    ("AIza", "google", _make(r"AIza[A-Za-z0-9_-]{35}")),
    ("ya29.", "google", _make(r"ya29\.[A-Za-z0-9_-]{20,250}")),
    ("hf_", "huggingface", _make(r"hf_[A-Za-z0-9]{30,64}")),
    ("npm_", "npm", _make(r"npm_[A-Za-z0-9]{36}")),
    ("pypi-", "pypi", _make(r"pypi-[A-Za-z0-9_-]{50,250}")),
    ("SG.", "sendgrid", _make(r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}")),
    ("eyJ", "jwt", _make(r"eyJ[A-Za-z0-9_-]{8,4000}\.eyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{0,4000}")),
)
PEM_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
PEM_END = re.compile(r"-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
PEM_OTHER = re.compile(r"[^A-Za-z0-9+/=:,\-\s\\]")  # stands in no block
PEM_REST = re.compile(r"[A-Za-z0-9+/=\s\\]*")
IN_ADDRESS = re.compile(r"://[^\s:/@]{0,100}:([^\s/@]{1,200})@")
HINTS = ("key", "token", "secret", "pass", "pwd", "credential", "密码", "口令", "密钥", "秘钥", "令牌")
INTRODUCED = re.compile(
    r"(?P<word>(?:api|access|auth|private|secret|client)[_ -]?(?:key|token|secret)|(?<![A-Za-z])(?:keys?|tokens?)"
    r"|secret|password|passwd|passcode|(?<![A-Za-z])pass|pwd|credentials?|密码|口令|密钥|秘钥|令牌)[\"']?\s{0,3}"
    r"(?:(?:is now|is set to|is|was|=>|[:=]|：|为|是|设为|改成|改为)\s{0,3}){1,3}"
    r"[\"'`“「]?(?P<value>[!#-&*-+\--:=?-Z^-z|~]{6,256})",
    re.IGNORECASE,
)
PASSWORDS = re.compile("pass|pwd|密码|口令|credential", re.IGNORECASE)
CODE = re.compile(r"^[$%]?[{(]|^\$|^%|://|^[./~]|^\*+$|\*{3}|[A-Za-z_]\.[A-Za-z_]")
NO_SECRET = re.compile(r"(?i)x{4,}|example|your[_-]|<|^(?:19|20)\d\d-\d\d-\d\d|^v?\d+(?:\.\d+)+")
LATIN = re.compile("[A-Za-z]")
DIGIT_OR_MARK = re.compile(r"[0-9!@#$%^&*?+]")
SHORTEST_PASSWORD, SHORTEST_KEY = 6, 12
LONGEST_BLOCK = 16_000  # characters of a private key in PEM
LEAST_ENTROPY = 3.0  # bits a character (Shannon, over the value itself) of a key that only a word introduces


def secrets(text: str) -> Iterator[Span]:
    for hint, make, pattern in MAKES:
        if hint in text:
            for found in pattern.finditer(text):
                yield Span(PiiKind.SECRET, found.start(), found.end(), f"secret:{make}")
    yield from _private_keys(text)
    if "://" in text:
        for found in IN_ADDRESS.finditer(text):
            yield Span(PiiKind.SECRET, found.start(1), found.end(1), "secret:address")
    lowered = text.lower()
    if any(hint in lowered for hint in HINTS):
        yield from _find_introduced(text)


class _Next:
    """The next match at or after a growing position: no part of the text is searched twice."""

    def __init__(self, pattern: re.Pattern[str], text: str) -> None:
        self._pattern, self._text = pattern, text
        self._found = pattern.search(text)

    def find_from(self, place: int) -> re.Match[str] | None:
        if self._found is not None and self._found.start() < place:
            self._found = self._pattern.search(self._text, place)
        return self._found


def _private_keys(text: str) -> Iterator[Span]:
    """Yield private key blocks; a block without an end reaches as far as its text looks like a key."""
    found = PEM_BEGIN.search(text)
    if not found:
        return
    closings, others = _Next(PEM_END, text), _Next(PEM_OTHER, text)
    while found:
        begun = found.end()
        rest = PEM_REST.match(text, begun)
        end = rest.end() if rest else begun
        closing, other = closings.find_from(begun), others.find_from(begun)
        if closing and closing.start() - begun <= LONGEST_BLOCK and not (other and other.start() < closing.start()):
            end = closing.end()
        yield Span(PiiKind.SECRET, found.start(), end, "secret:private_key")
        found = PEM_BEGIN.search(text, end)


def _find_introduced(text: str) -> Iterator[Span]:
    for found in INTRODUCED.finditer(text):
        value = found["value"].rstrip(".:?!")
        if _is_secret(found["word"], value):
            start = found.start("value")
            yield Span(PiiKind.SECRET, start, start + len(value), "secret:introduced")


def _is_secret(word: str, value: str) -> bool:
    """Return whether `value` looks random: it has letters with digits or marks, and is no program code."""
    if CODE.search(value) or NO_SECRET.search(value):
        return False
    mixed = bool(LATIN.search(value)) and bool(DIGIT_OR_MARK.search(value))
    if PASSWORDS.search(word):
        digits = len(value) >= SHORTEST_PASSWORD and value.isdigit()
        return digits or (mixed and len(value) >= SHORTEST_PASSWORD)
    return mixed and len(value) >= SHORTEST_KEY and entropy(value) >= LEAST_ENTROPY


def entropy(value: str) -> float:
    """Return the Shannon entropy of `value`, in bits per character."""
    return -sum(count / len(value) * log2(count / len(value)) for count in Counter(value).values())
