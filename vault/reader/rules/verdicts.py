"""Verdicts: yes or no as the answer of a text to a question, where it gives one. Pure.

A verdict is only given where it is certain: the clause has what the question names, is about the same person, and says
what is, not what was, may be or is wished.
"""

import re
from collections.abc import Iterator

from vault.lexicon.concepts import base_forms
from vault.lexicon.labels import find_word
from vault.lexicon.tokens import terms
from vault.reader.rules.questions import LIGHT_WEIGHT, QuestionKind, QuestionParts, question_parts

LEAST_NAMED = 0.75  # of the weight of a question's words, that a clause must name to decide it
LONGEST_DECIDING = 1_000  # characters of a text that are read for a verdict
Clause = tuple[frozenset[str], bool]  # words, and whether it is negated

_NEGATION = re.compile(
    r"\b(?:not|never|no longer|cannot|nobody|nothing|without|hardly)\b|n't\b|\bno\b|不(?!过(?!敏)|错|但|仅|久|少|断"
    r"|同|管|如|好意思)|没(?!问题|关系|事)|从未|别|\b(?:hates?|dislikes?|detests?)\b|讨厌"
)
# Something that was, and is no more; "off" and 取消 at the end of a plan.
_ENDED = re.compile(
    r"\b(?:off|cancel+ed)\W*$|取消|\b(?:quit|sold|gave up|given up|gave away|got rid of|stopped|broke up|dropped out)\b"
    r"|退出|退了|戒[了掉]|卖[了掉]|辞[了职]|放弃|分手|停了|送人了|丢了"
)
_CLAUSE = re.compile(r"[,;.!?，；。！？]| but |但是?|可是|不过(?!敏)")
# What may be, is wished or was: it decides nothing, unless the question is about just that.
_UNCERTAIN = (
    re.compile(r"\b(?:might|may|could|would|should|maybe|perhaps|probably|possibly|if|unless|whether)\b|\bi'd\b"),
    re.compile(
        r"\b(?:wish|hope|want|wanna|plan|planning|intend|dream|think|thinking|consider|considering|try|trying)\b"
    ),
    re.compile(r"\b(?:used to|almost|nearly|as a (?:child|kid|student|boy|girl)|back then|formerly)\b"),
    re.compile(r"可能|也许|或许|大概|说不定|如果|要是|假如|万一|的话"),
    re.compile(r"想|希望|打算|计划|考虑|准备"),
    re.compile(r"以前|曾经?|从前|过去|小时候|原来|本来|差点"),
)
_ASKER = re.compile(r"\b(?:i|we)(?:'\w+)?\b")
_AUXILIARY = r"(?:do|does|did|is|are|am|was|were|have|has|had|can|could|will|would|should)(?:n't)?"
_ASKS_ABOUT_ASKER = re.compile(rf"\b{_AUXILIARY} (?:i|we)\b|^(?:i|we)(?:'\w+)?\b")
_KIN = "妈爸父母哥姐弟妹爷奶外叔姨舅姑伯婶儿女老表堂岳公婆同朋邻室闺上领导孩"
_ASKER_HAN = re.compile(f"(?:我|咱)们?(?![{_KIN}的们])|(?:我|咱)们?(?:的确|上[周个次课班]|老是|同[意时])")
_OTHER = re.compile(
    r"^\W*(?:and |so |well |now )?(?:my|our|his|her|their|your|he|she|they|it|the|a|an|this|that|these|those|some|every"
    r"|most|there)\b"
)
_OTHER_HAN = re.compile(f"^\\W*(?:[他她它]|(?:我|咱)们?的?[{_KIN}]|这|那|大家|有人|别人)")
_PAST_QUESTION = re.compile(r"\b(?:did|was|were|had|have|has|ever|been)\b|过|了|以前|曾经")
_PAST_WORD = re.compile(
    r"(?<!\bam )(?<!\bis )(?<!\bare )(?<!'m )(?<!'s )(?<!'re )(?<!\bhave )(?<!\bhas )(?<!'ve )\b\w+ed\b"
)


def decides_yes(question: str, text: str) -> bool | None:
    """Return the answer that a text gives to a yes-or-no question; None if it gives none, and for other questions."""
    asked = question_parts(question)
    return decide_verdict(asked, text) if asked.kind is QuestionKind.YES_NO else None


def asks_yes_or_no(question: str) -> bool:
    return question_parts(question).kind is QuestionKind.YES_NO


def decide_verdict(asked: QuestionParts, text: str, speaker: str = "", *, own: bool = True) -> bool | None:
    """Return the answer that a text gives to a yes-or-no question; None if it is not certain.

    own: the asking person said the text; speaker: who else did.
    """
    folded = text[:LONGEST_DECIDING].casefold().replace("\u2019", "'")
    decided = [
        _is_negative(clause) == _is_negative(asked.text)
        for clause, subject in _read_subjects(folded)
        if _names_what_is_asked(asked, clause, speaker)
        and _is_certain(asked, clause)
        and _fits(asked, subject, own=own)
    ]
    return decided[0] if decided and len(set(decided)) == 1 else None


def read_clauses(text: str) -> frozenset[Clause]:
    """Return the words of each clause of a text, and whether it is negated. Never empty."""
    parts = set(_CLAUSE.split(text.casefold()))
    return frozenset((base_forms(terms(part)), _is_negative(part)) for part in parts)


def contradicts(claim: str, clauses: frozenset[Clause]) -> bool:
    """Return whether a clause with most words of a claim is negated and the claim is not, or vice versa."""
    words, is_negative = base_forms(terms(claim)), _is_negative(claim.casefold())
    most = max(len(words & clause) for clause, _ in clauses)
    return most > 0 and any(is_other != is_negative for clause, is_other in clauses if len(words & clause) == most)


def _read_subjects(folded: str) -> Iterator[tuple[str, bool]]:
    """Yield each clause, and whether its subject is the speaker; one without a subject has that of the one before."""
    is_speaker = True
    for clause in _CLAUSE.split(folded):
        if not clause.strip():
            continue
        if _OTHER.search(clause) or _OTHER_HAN.search(clause):
            is_speaker = False
        elif _ASKER.search(clause) or _ASKER_HAN.search(clause):
            is_speaker = True
        yield clause, is_speaker


def _names_what_is_asked(asked: QuestionParts, clause: str, speaker: str) -> bool:
    """Return whether a clause has the words, concepts and names of a question, as far as they say what is asked."""
    words = base_forms(terms(clause))

    def has(term: str) -> bool:
        return term in words or (not term.isascii() and term in clause)

    if any(find_word(clause, name) < 0 and name != speaker.casefold() for name in asked.names):
        return False
    weights = [(weight, has(term)) for term, weight in asked.terms.items() if weight > LIGHT_WEIGHT]
    weights += [(1.0, concept.told.search(clause) is not None) for concept in asked.concepts]
    weights = weights or [(weight, has(term)) for term, weight in asked.terms.items()]
    whole = sum(weight for weight, _ in weights)
    return whole > 0 and sum(weight for weight, is_there in weights if is_there) >= LEAST_NAMED * whole


def _is_certain(asked: QuestionParts, clause: str) -> bool:
    if any(pattern.search(clause) and not pattern.search(asked.text) for pattern in _UNCERTAIN):
        return False
    if _PAST_QUESTION.search(asked.text):
        return True
    past = {word for word in _PAST_WORD.findall(clause) if word not in asked.text}
    return not any(base_forms(terms(word)) & asked.terms.keys() for word in past)


def _fits(asked: QuestionParts, is_speaker: bool, *, own: bool) -> bool:
    """Return whether a clause is about the person that a question is about."""
    if _ASKS_ABOUT_ASKER.search(asked.text) or _ASKER_HAN.search(asked.text):
        return own and is_speaker
    return True


def _is_negative(clause: str) -> bool:
    """Return whether a clause is negated, or says that something has ended."""
    return bool(_NEGATION.search(clause)) != bool(_ENDED.search(clause))
