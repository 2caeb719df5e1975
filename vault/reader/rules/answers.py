"""Extractive answers: chooses the retrieved passages that answer a question, or none. Pure.

A passage matches if it has the question's words, is about the same person, and has the kind of content that the
question asks for; the weights of a match were set on the calibration half of `benchmark answers`. A model that was
trained on other people's questions turns the match, the scores of the search and who speaks into the probability that
the passage answers (vault.reader.rules.answer_model).
"""

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import log

from vault.lexicon.concepts import base_forms
from vault.lexicon.dates import find_named_times
from vault.lexicon.dates import fold_signs as plain_signs
from vault.lexicon.entities import entities
from vault.lexicon.labels import find_word
from vault.lexicon.recurrences import read_recurrence
from vault.lexicon.temporal_expressions import remove_times
from vault.lexicon.tokens import content_terms, terms
from vault.reader.rules.answer_model import FEATURES, LEAST, lead_of, load_answer_model
from vault.reader.rules.joins import find_links, split_question
from vault.reader.rules.kinds import is_question
from vault.reader.rules.questions import QuestionKind, QuestionParts, question_parts
from vault.reader.rules.sentences import is_lead_in, sentences
from vault.reader.rules.verdicts import decide_verdict

COVERAGE_WEIGHT, KIND_WEIGHT, DENSE_WEIGHT, RANK_WEIGHT = 0.7, 0.15, 0.1, 0.05
OF_ANOTHER = 0.5  # factor of a passage that somebody else said about themselves
WITHOUT_NEEDED = 0.6  # factor of a passage that holds nothing of what is asked for: a number, a reason, a place
WITHOUT_VECTOR = 0.6  # nearness of a whole match that has no vector yet
MATCH = FEATURES.index("match")
UNSEEN_OF_LIST = 0.5  # the best of the passages that the search left out, as a share of the only one that it found
LEADS = (FEATURES.index("match_lead"), FEATURES.index("lead"))
WHOLE_MATCH = 0.85  # match from which a passage is quoted
OF_NEIGHBOUR = 0.8  # what a term counts for that only the question before the passage holds
BESIDE_BEST = 0.2  # of the best probability, that another passage must have to be quoted beside it
LONGEST_WHOLE = 300  # characters of a message that is quoted whole
MOST_LISTED, LONGEST_LISTED = 6, 120  # quotes of a list, and characters of a message that is quoted whole there
LEAST_LISTED = 0.85  # of the best match, that another entry of a list must have
BESIDE_LISTED = 0.6  # of the best probability, that another entry of a list must have
LONGEST_REPLY = 380  # characters of all quotes together, each with what names its source
FRAME = 45  # characters that name the source of a quote
ASSISTANT = "assistant"  # the speaker of the messages of an assistant
MOST_SENTENCES = 500  # of one passage that are weighed
CERTAIN = 0.6  # probability from which a passage answers by itself
LEAST_JOINED = 0.15  # probability from which two passages together answer
QUOTES_OF_PART = 2  # of a part of a question that asks for a list; others have the best one alone
LEAST_OF_REST = 0.25  # of the question's other words, that the second of them has
SAME_ANSWER = 0.8  # Jaccard similarity of the terms from which two quotes say the same
NEAREST, LEAST_NEAREST = 3, 0.3  # passages that are offered where none answers, and their match

_DIGITS = r"[0-9]|[一二三四五六七八九十百千万两半]"
_NUMBER = re.compile(
    rf"{_DIGITS}|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|\w+teen|twenty|thirty"
    rf"|forty|fifty"
    r"|sixty|seventy|eighty|ninety|hundred|thousand|once|twice|half|one)\b"
)
_PLACE = re.compile(
    r"\b(?:in|at|to|from|near|into|around|through|across|along) (?:the |a |my |our |his |her )?[^\W\d]"
    r"|\bon (?:the|a|my|our|his|her) [^\W\d]"
    r"|\b(?:under|below|behind|above|beside|inside|outside|between|next to) [^\W\d]"
    r"|在(?![0-9一二三四五六七八九十]{1,3}月)|去|到|从|住|搬"
)
_REASON = re.compile(
    r"\b(?:because|since|so that|in order|due to|reason|so i|,? so the|too often|warned|wants? me)\b"
    r"|因为|由于|所以|为了|是.{1,8}[让的]|想|让"
)
_NEEDED = {QuestionKind.COUNT: _NUMBER, QuestionKind.WHY: _REASON, QuestionKind.WHERE: _PLACE}
# A question for the name of a thing, and words that give one where no entity is recognised.
_NAME_ASKED = re.compile(r"\b(?:its|the|their) (?:name|title)s?\b|\bname of\b|\bcalled\b|名字|叫什么|[书片歌]名")
_NAMES = re.compile(r"[《「『\"“]|\b(?:called|named|titled)\b|叫|名[字为]")
# What the assistant, or the asking person, is asked to have said.
_ASSISTANT_SAID = re.compile(
    r"\byou\b[^.?!]{0,24}?\b(?:recommend|suggest|tell|told|say|said|mention|give|gave|share|introduce|advise|write"
    r"|wrote|promise|teach|taught)|\byour (?:suggest|advice|recommend)"
    r"|你[^，。？！?!]{0,8}?(?:推荐|告诉|建议|提到|说|介绍|分享|提供|答应|写|教|给)"
)
_ASKER_SAID = re.compile(
    r"\bi\b[^.?!]{0,24}?\b(?:recommend|suggest|tell|told|say|said|mention|share|introduce)"
    r"|我[^，。？！?!]{0,8}?(?:推荐|告诉|提到|说|介绍|分享|问|咨询)"
)
_PAST = re.compile(r"\b(?:was|were|had|did)\b|\b\w+ed\b|了|过")


@dataclass(frozen=True, slots=True)
class Passage:
    """A retrieved memory. own: the asking person said it. session, position: its place, if any.

    score: of the search, 0..1; dense, context: its parts for meaning and for the words around it.
    """

    key: str
    text: str = field(repr=False)
    score: float
    speaker: str = ""
    own: bool = False
    time: datetime | None = None
    dense: float = 0.0
    context: float = 0.0
    session: Hashable = None
    position: int | None = None


@dataclass(frozen=True, slots=True)
class Quote:
    """A part of the passage `key`, verbatim.

    match: 0..1, the probability that it answers; of a passage that is only near, how well it matches.
    """

    key: str
    text: str = field(repr=False)
    match: float


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer. quotes: best first; if there are none, `nearest` has the closest passages. verdict: of a yes-or-no
    question.
    """

    quotes: tuple[Quote, ...]
    nearest: tuple[Quote, ...]
    verdict: bool | None = None


@dataclass(frozen=True, slots=True)
class _Candidate:
    quote: Quote
    terms: frozenset[str]


def answer_question(question: str, passages: Sequence[Passage], limit: int) -> Answer:
    """Return the answer of the passages to `question`: up to `limit` quotes, at most one per passage, without
    near-duplicates.
    """
    asked = question_parts(question, {passage.speaker for passage in passages})
    if asked.kind is QuestionKind.TOPICS:
        return _answer_topics(asked, passages, limit)
    parts = [
        part for text in split_question(question) if (part := _answer_asked(question_parts(text), passages, 1)).quotes
    ]
    if parts:
        return _merge_answers(parts)
    answer = _answer_asked(asked, passages, limit)
    joined = None if asked.is_list else _answer_joined(question, passages)
    if joined is None or not answer.quotes:
        return joined or answer
    direct = answer.quotes[0].match
    return joined if direct < max(CERTAIN, joined.quotes[0].match) else answer


def _answer_joined(question: str, passages: Sequence[Passage]) -> Answer | None:
    """Return the answer of two passages to a question that describes what it is about: the one that answers for the
    name, and the one that names it. None if there are no two."""
    by_key = {passage.key: passage for passage in passages}
    ranked = sorted(passages, key=lambda passage: -passage.score)
    found: list[tuple[float, Answer]] = []
    for link in find_links(question, [(passage.key, passage.text) for passage in ranked]):
        asked = question_parts(link.rest, {link.name})
        unnamed = replace(asked, names=())
        fitting = {
            passage.key
            for passage in passages
            if link.name in passage.text and _measure_coverage(unnamed, passage, None) >= LEAST_OF_REST
        }
        others = [passage for passage in passages if passage.key != link.key]
        rated = _rate_candidates(asked, others)
        best = next((other.quote for other in rated if other.quote.key in fitting), None)
        if best is not None and best.match >= LEAST_JOINED:
            bridge = Quote(link.key, _cut_passage(asked, by_key[link.key].text), best.match)
            found.append((best.match, Answer((best, bridge), ())))
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _answer_asked(asked: QuestionParts, passages: Sequence[Passage], limit: int) -> Answer:
    ranked = _rate_candidates(asked, passages)
    if not ranked or ranked[0].quote.match < LEAST:
        described = describe_passages(asked, passages)
        near = _rank_candidates(_make_candidate(asked, passage, features[MATCH]) for passage, features in described)
        return Answer((), tuple(_choose_quotes(near, NEAREST, LEAST_NEAREST)))
    if asked.is_list:
        return Answer(tuple(_choose_entries(asked, passages, ranked, limit)), ())
    chosen = _put_newest_first(_choose_quotes(ranked, limit, BESIDE_BEST * ranked[0].quote.match), passages)
    verdict = _find_verdict(asked, chosen, passages) if asked.kind is QuestionKind.YES_NO else None
    return Answer(tuple(chosen), (), verdict)


def _merge_answers(parts: Sequence[Answer]) -> Answer:
    """Return the quotes of the parts of a question, the best of each part first, each passage once."""
    ordered = [part.quotes[at] for at in range(QUOTES_OF_PART) for part in parts if at < len(part.quotes)]
    chosen: dict[str, Quote] = {}
    for quote in ordered:
        if sum(len(other.text) + FRAME for other in chosen.values()) + len(quote.text) <= LONGEST_REPLY:
            chosen.setdefault(quote.key, quote)
    return Answer(tuple(chosen.values()), ())


def _rate_candidates(asked: QuestionParts, passages: Sequence[Passage], *, as_list: bool = False) -> list[_Candidate]:
    """Return the passages with their probabilities to answer, best first. as_list: none loses by the others' lead."""
    before, described = _find_before(passages), describe_passages(asked, passages)
    if as_list:
        for at in LEADS:
            best = max((features[at] for _, features in described), default=0.0)
            described = [(passage, [*features[:at], best, *features[at + 1 :]]) for passage, features in described]
        least = LEAST_LISTED * max((features[MATCH] for _, features in described), default=0.0)
        described = [(passage, features) for passage, features in described if features[MATCH] >= least]
    return _rank_candidates(
        _make_candidate(asked, passage, _rate_passage(features, _lessen(asked, passage, before(passage))))
        for passage, features in described
    )


def holds_number(text: str) -> bool:
    """Return whether a text has a number, in digits or words."""
    return _NUMBER.search(text.casefold()) is not None


def _choose_entries(
    asked: QuestionParts, passages: Sequence[Passage], ranked: Sequence[_Candidate], limit: int
) -> list[Quote]:
    """Return the quotes of a list: those that answer best, and others that are as much about what is asked for."""
    best = [found for found in ranked if found.quote.match >= BESIDE_BEST * ranked[0].quote.match][:limit]
    by_key, keys = {passage.key: passage for passage in passages}, {found.quote.key for found in best}
    others = [
        _make_candidate(asked, by_key[found.quote.key], found.quote.match, LONGEST_LISTED)
        for found in _rate_candidates(asked, passages, as_list=True)
        if found.quote.key not in keys
    ]
    others = [found for found in others if found.quote.match >= BESIDE_LISTED * others[0].quote.match]
    least = min(found.quote.match for found in [*best, *others])
    return _choose_quotes([*best, *others], MOST_LISTED, least)


def _choose_quotes(ranked: Sequence[_Candidate], limit: int, least: float) -> list[Quote]:
    """Return the best distinct quotes with a match of at least `least`; several only if all of them are short."""
    chosen: list[_Candidate] = []
    length = 0
    for candidate in ranked:
        added = len(candidate.quote.text) + FRAME
        fits = not chosen or length + added <= LONGEST_REPLY
        if len(chosen) == limit or candidate.quote.match < least:
            break
        if fits and not any(_says_the_same(candidate, other) for other in chosen):
            chosen.append(candidate)
            length += added
    return [candidate.quote for candidate in chosen]


def _put_newest_first(chosen: Sequence[Quote], passages: Sequence[Passage]) -> list[Quote]:
    """Return the quotes with the latest first of those that differ in times and numbers alone: "it ends on …"."""
    speakers = {passage.key: passage.speaker for passage in passages}
    times = {passage.key: passage.time for passage in passages if passage.time is not None}
    frames = [(speakers[quote.key], _frame(quote.text)) for quote in chosen]
    ordered = list(chosen)
    for frame in set(frames):
        places = [at for at, quote in enumerate(chosen) if frames[at] == frame and quote.key in times]
        newest = sorted((chosen[at] for at in places), key=lambda quote: times[quote.key], reverse=True)
        for place, quote in zip(places, newest, strict=True):
            ordered[place] = quote
    return ordered


def _frame(text: str) -> frozenset[str]:
    return frozenset(term for term in content_terms(remove_times(text)) if not any(map(str.isdecimal, term)))


def _find_verdict(asked: QuestionParts, chosen: Sequence[Quote], passages: Sequence[Passage]) -> bool | None:
    """Return the verdict of the latest quote that decides the question; None if none does or it is unclear which."""
    by_key = {passage.key: passage for passage in passages}
    decided = [
        (passage.time, verdict)
        for quote, passage in ((quote, by_key[quote.key]) for quote in chosen)
        if (verdict := decide_verdict(asked, quote.text, passage.speaker, own=passage.own)) is not None
    ]
    times = [time for time, _ in decided if time is not None]
    latest = {verdict for time, verdict in decided if len(times) < len(decided) or time == max(times)}
    return latest.pop() if len(latest) == 1 else None


def _answer_topics(asked: QuestionParts, passages: Sequence[Passage], limit: int) -> Answer:
    """Return the best passages of the named day, in the order of time."""
    stating = sorted(
        (passage for passage in passages if not _only_asks(passage.text)), key=lambda passage: -passage.score
    )[:limit]
    if all(passage.time for passage in stating):
        stating.sort(key=lambda passage: (passage.time, passage.position or 0))
    return Answer(
        tuple(Quote(passage.key, _cut_passage(asked, passage.text), passage.score) for passage in stating), ()
    )


def describe_passages(asked: QuestionParts, passages: Sequence[Passage]) -> list[tuple[Passage, list[float]]]:
    """Return the passages that state something, each with its features in the order of FEATURES."""
    stating = [passage for passage in passages if not _only_asks(passage.text)]
    highest = max((passage.score for passage in stating), default=0.0)
    led = list(map(_find_before(passages), stating))
    matches = [_measure_match(asked, *pair, highest) for pair in zip(stating, led, strict=True)]
    shares = [passage.score / highest if highest > 0 else 0.0 for passage in stating]
    of_assistant = _ASSISTANT_SAID.search(asked.text) is not None
    of_asker = not of_assistant and _ASKER_SAID.search(asked.text) is not None
    unseen = UNSEEN_OF_LIST if asked.is_list else 1.0
    described = []
    for at, (passage, leader) in enumerate(zip(stating, led, strict=True)):
        by_assistant = passage.speaker == ASSISTANT
        has_vector = passage.dense != 0
        features = {
            "match": matches[at],
            "match_lead": lead_of(matches, at, unseen),
            # What was said a moment ago has no vector yet, and its score lacks that part.
            "lead": lead_of(shares, at, unseen) if has_vector else max(0.0, lead_of(shares, at, unseen)),
            "nearness": max(0.0, passage.dense) if has_vector else WITHOUT_VECTOR * matches[at],
            "context": passage.context,
            "length": log(len(passage.text) + 1),
            "reply": _measure_coverage(asked, leader, None) if leader and is_question(leader.text) else 0.0,
            "own": passage.own,
            "assistant": by_assistant,
            "assistant_asked": of_assistant and by_assistant,
            "other_asked": (of_assistant and not by_assistant) or (of_asker and by_assistant),
            "chinese": not asked.is_english,
        }
        described.append((passage, [float(features[name]) for name in FEATURES]))
    return described


def _find_before(passages: Sequence[Passage]) -> Callable[[Passage], Passage | None]:
    """Return a function that finds the passage before another in its session."""
    places = {(passage.session, passage.position): passage for passage in passages if passage.position is not None}
    return lambda passage: places.get((passage.session, (passage.position or 0) - 1))


def _rate_passage(features: Sequence[float], factor: float) -> float:
    """Return the probability that a passage answers. A whole match is enough to be quoted, also where the model, which
    learned from dialogues, expects no answer: in packs and in what a team wrote down."""
    likely = load_answer_model().estimate(features) * factor
    return max(likely, LEAST) if features[MATCH] >= WHOLE_MATCH else likely


def _rank_candidates(candidates: Iterable[_Candidate]) -> list[_Candidate]:
    return sorted(candidates, key=lambda candidate: -candidate.quote.match)


def _make_candidate(
    asked: QuestionParts, passage: Passage, probability: float, longest: int = LONGEST_WHOLE
) -> _Candidate:
    text = _cut_passage(asked, passage.text, longest)
    return _Candidate(Quote(passage.key, text, probability), frozenset(terms(text)))


def _measure_match(asked: QuestionParts, passage: Passage, before: Passage | None, highest: float) -> float:
    """Return how well a passage matches a question, 0..1. highest: the best score of the search."""
    match = (
        COVERAGE_WEIGHT * _measure_coverage(asked, passage, before)
        + KIND_WEIGHT * _kind_match(asked, passage)
        + DENSE_WEIGHT * max(0.0, min(1.0, passage.dense))
        + RANK_WEIGHT * (max(0.0, passage.score / highest) if highest > 0 else 0.0)
    )
    return max(0.0, min(1.0, match * _lessen(asked, passage, before)))


def _lessen(asked: QuestionParts, passage: Passage, before: Passage | None) -> float:
    """Return the factor of a passage: less than 1 if it is of somebody else, or holds nothing of what is asked for."""
    factor = 1.0 if _is_about(asked, passage, before) else OF_ANOTHER
    if _NAME_ASKED.search(asked.text) and not _holds_name(asked, passage.text):
        factor *= WITHOUT_NEEDED
    needed = _NEEDED.get(asked.kind)
    return factor if needed is None or needed.search(passage.text.casefold()) else factor * WITHOUT_NEEDED


def _holds_name(asked: QuestionParts, text: str) -> bool:
    return _NAMES.search(text) is not None or bool(set(entities(text)) - set(asked.names))


def _measure_coverage(asked: QuestionParts, passage: Passage, before: Passage | None) -> float:
    """Return the share of the question's weight that the passage has; the question before it may supply some."""
    stated = _drop_questions(passage.text)
    text, held = stated.casefold(), base_forms(terms(stated))
    led = before.text if before is not None and is_question(before.text) else ""
    led_terms, led_text = (base_forms(terms(led)), led.casefold()) if led else (frozenset(), "")
    total = found = 0.0
    for term, weight in asked.terms.items():
        total += weight
        spoken = term in held or (len(term) == 1 and not term.isascii() and term in text)
        found += weight * (1.0 if spoken else OF_NEIGHBOUR if term in led_terms else 0.0)
    for concept in asked.concepts:
        total += 1.0
        found += 1.0 if concept.told.search(text) else OF_NEIGHBOUR if led and concept.told.search(led_text) else 0.0
    for name in asked.names:
        total += 0.7
        spoken = find_word(text, name) >= 0 or name == passage.speaker.casefold()
        found += 0.7 * (1.0 if spoken else OF_NEIGHBOUR if find_word(led_text, name) >= 0 else 0.0)
    return found / total if total else 0.0


def _kind_match(asked: QuestionParts, passage: Passage) -> float:
    """Return how well the passage has the kind of content that the question asks for, 0..1."""
    text = passage.text.casefold()
    if asked.kind is QuestionKind.WHEN:
        is_timed = next(find_named_times(plain_signs(passage.text)), None) or read_recurrence(passage.text)
        return 1.0 if is_timed else 0.5 if _PAST.search(text) else 0.2
    needed = _NEEDED.get(asked.kind)
    if needed is not None:
        return 1.0 if needed.search(text) else 0.0
    if asked.kind is QuestionKind.WHO:
        return 1.0 if set(entities(passage.text)) - set(asked.names) else 0.4
    return 1.0


def _is_about(asked: QuestionParts, passage: Passage, before: Passage | None) -> bool:
    """Return whether the person in question said the passage, or the passage or the question before it names that
    person. The assistant is the person in question where the question asks what it said.
    """
    if passage.speaker == ASSISTANT and _ASSISTANT_SAID.search(asked.text):
        return True
    text = passage.text.casefold()
    led = before.text.casefold() if before is not None and is_question(before.text) else ""
    if any(
        find_word(text, name) >= 0 or find_word(led, name) >= 0 or name == passage.speaker.casefold()
        for name in asked.names
    ):
        return True
    return passage.own if asked.about_asker else not asked.names


def _cut_passage(asked: QuestionParts, text: str, longest: int = LONGEST_WHOLE) -> str:
    """Return the quote of a passage: all of a short one; of a long one its best sentence, or a lead-in and its list."""
    whole = text.strip()
    if len(whole) <= longest and "\n" not in whole:
        return whole
    some = sentences(text)[:MOST_SENTENCES]
    if not some:
        return whole[:LONGEST_WHOLE]
    wanted = frozenset(asked.terms)

    def speaks(sentence: str) -> float:
        folded = sentence.casefold()
        spoken = sum(1.0 for concept in asked.concepts if concept.told.search(folded)) + sum(
            0.5 for name in asked.names if find_word(folded, name) >= 0
        )
        kind = 0.5 * _kind_match(asked, Passage("", sentence, 0.0))
        return spoken + len(wanted & base_forms(terms(sentence))) + kind - (2.0 if is_question(sentence) else 0.0)

    return _cited_passage(text, some, max(some, key=speaks))


def _cited_passage(text: str, some: Sequence[str], best: str) -> str:
    """Return the best of the sentences; a lead-in together with the text after it, up to LONGEST_WHOLE."""
    start = text.index(best)
    end = start + len(best)
    if is_lead_in(best):
        for sentence in some[some.index(best) + 1 :]:
            until = text.index(sentence, end) + len(sentence)
            if until - start > LONGEST_WHOLE:
                break
            end = until
    return text[start:end]


def _drop_questions(text: str) -> str:
    """Return `text` without its questions, unless it has nothing else."""
    if "?" not in text and "？" not in text:
        return text
    return " ".join(sentence for sentence in sentences(text)[:MOST_SENTENCES] if not is_question(sentence)) or text


def _only_asks(text: str) -> bool:
    return all(is_question(sentence) for sentence in sentences(text)[:8])


def _says_the_same(first: _Candidate, other: _Candidate) -> bool:
    if not first.terms or not other.terms:
        return first.quote.text.casefold() == other.quote.text.casefold()
    return len(first.terms & other.terms) >= SAME_ANSWER * len(first.terms | other.terms)
