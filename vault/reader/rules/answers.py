"""The reply without a language model: which sentences of the retrieved memories answer the question best. Pure."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log

from vault.lexicon.tokens import query_terms, terms
from vault.reader.rules.kinds import is_question, is_small_talk
from vault.reader.rules.sentences import sentences

OVERLAP_WEIGHT, PASSAGE_WEIGHT, CUE_WEIGHT = 0.6, 0.3, 0.1
SMALL_TALK_FACTOR = 0.5
MOST_SENTENCES = 500  # of one passage that are weighed; a text of ordinary sentences has no more
LEAST_OVERLAP = 0.5  # of the best sentence's, that another must have to be quoted beside it
SAME_ANSWER = 0.8  # Jaccard similarity of the terms from which two sentences say the same

_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_WHEN = re.compile(
    rf"\b(?:yesterday|today|tomorrow|tonight|last|next|ago|since|(?:{_MONTHS})[a-z]*|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|week(?:end)?|(?:1[89]|20)[0-9]{2})\b|昨天|今天|明天|前天|上周|下周|去年|明年|[年月日号]|星期|周[一二三四五六日末]"
)
_NUMBER = re.compile(
    r"[0-9]|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|dozen|hundred|once|twice|both)\b|[一二两三四五六七八九十百]"
)
_WHERE = re.compile(r"\b(?:in|at|to|from|near|on)\s|在|去|到|从|住")
_WHY = re.compile(r"\b(?:because|since|so that|in order|due to|reason)\b|因为|由于|所以|为了")
# What a question asks for, and what a sentence that answers it tends to hold.
_CUES = (
    (re.compile(r"\bwhen\b|\bwhat (?:time|day|date|year|month)\b|什[么麼][时時]候|何时|哪[天年月]|几[点月号]"), _WHEN),
    (re.compile(r"\bhow (?:many|much|old|long|often)\b|多少|多久|多大|几[个岁次]"), _NUMBER),
    (re.compile(r"\bwhere\b|哪[里裡儿]|何处|什么地方"), _WHERE),
    (re.compile(r"\bwhy\b|为什么|為什麼|为何"), _WHY),
)


@dataclass(frozen=True, slots=True)
class Passage:
    """A retrieved memory: its key, its text, and its score in the search (any scale, larger is better)."""

    key: str
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class Quote:
    """One sentence of the passage `key`, verbatim; `score` is 0..1 and comparable within one answer only."""

    key: str
    sentence: str
    score: float


@dataclass(frozen=True, slots=True)
class _Candidate:
    quote: Quote
    terms: frozenset[str]
    asks: bool
    overlap: float


def best_sentences(question: str, passages: Sequence[Passage], limit: int) -> list[Quote]:
    """Up to `limit` sentences, best first, at most one per passage, near-duplicates once.

    A sentence scores by the question's terms that it holds, each weighted by its rarity among the passages, by its
    passage's score, and by holding what the question asks for (a date, a number, a place, a reason). One that holds
    little of what another holds is left out. A question is quoted only if no passage makes a statement.
    """
    candidates = [best for each in _weighed(question, passages) if (best := _best(each)) is not None]
    if any(not candidate.asks for candidate in candidates):
        candidates = [candidate for candidate in candidates if not candidate.asks]
    highest = max((candidate.overlap for candidate in candidates), default=0.0)
    candidates = [candidate for candidate in candidates if candidate.overlap >= LEAST_OVERLAP * highest]
    chosen: list[_Candidate] = []
    for candidate in sorted(candidates, key=lambda each: -each.quote.score):
        if len(chosen) < limit and not any(_says_the_same(candidate, other) for other in chosen):
            chosen.append(candidate)
    return [candidate.quote for candidate in chosen]


def _weighed(question: str, passages: Sequence[Passage]) -> Iterator[list[_Candidate]]:
    """For each passage its sentences with their scores."""
    rarity = _rarity(frozenset(query_terms(question)), passages)
    highest = max((passage.score for passage in passages), default=0.0)
    cues = [cue for asked, cue in _CUES if asked.search(question.casefold())]
    for passage in passages:
        standing = max(0.0, passage.score / highest) if highest > 0 else 0.0
        some = sentences(passage.text)[:MOST_SENTENCES]
        yield [_candidate(passage.key, sentence, standing, rarity, cues) for sentence in some]


def _rarity(wanted: frozenset[str], passages: Sequence[Passage]) -> dict[str, float]:
    """Weight of each wanted term, BM25's inverse document frequency over the passages, scaled to sum to 1.

    Terms that no passage holds weigh too: what answers only the commonest word of a question scores low.
    """
    holding = Counter(term for passage in passages for term in wanted.intersection(terms(passage.text)))
    weights = {
        term: log(1 + (len(passages) - holding[term] + 0.5) / (holding[term] + 0.5))
        for term in sorted(wanted)  # a set's order differs between runs, and so would the last digit of a sum
    }
    total = sum(weights.values())
    return {term: weight / total for term, weight in weights.items()}


def _candidate(
    key: str, sentence: str, standing: float, rarity: dict[str, float], cues: Sequence[re.Pattern[str]]
) -> _Candidate:
    found = terms(sentence)
    held = frozenset(found)
    overlap = sum(weight for term, weight in rarity.items() if term in held)
    cued = any(cue.search(sentence.casefold()) for cue in cues)
    score = OVERLAP_WEIGHT * overlap + PASSAGE_WEIGHT * standing + CUE_WEIGHT * cued
    asks = is_question(sentence)
    if not asks and is_small_talk(sentence, len(found)):
        score *= SMALL_TALK_FACTOR
    return _Candidate(Quote(key, sentence, score), held, asks, overlap)


def _best(candidates: Sequence[_Candidate]) -> _Candidate | None:
    """The highest score among the statements, else among the questions; ties: the first."""
    return max(candidates, key=lambda each: (not each.asks, each.quote.score), default=None)


def _says_the_same(one: _Candidate, other: _Candidate) -> bool:
    if not one.terms or not other.terms:
        return one.quote.sentence.casefold() == other.quote.sentence.casefold()
    return len(one.terms & other.terms) >= SAME_ANSWER * len(one.terms | other.terms)
