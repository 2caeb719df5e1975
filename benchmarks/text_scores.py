"""Scores of a reply against labelled answers: token F1, BLEU-1, and the judgement of a language model."""

import math
import re
from collections import Counter
from collections.abc import Sequence

from vault.providers.ports import ChatMessage, ChatRole, CompletingLlm

JUDGE = (
    "You compare a reply with the accepted answers to a question. Say CORRECT if the reply tells one of the accepted "
    "answers, whatever else it says and in whatever words or format of dates; else say WRONG. Say nothing else."
)
_TOKEN = re.compile(r"[\u3400-\u9fff]|[^\W_]+")
_ARTICLES = frozenset({"a", "an", "the"})
_MARKER = re.compile(r"\[(?:\d+|\?)\]")


def tokens_of(text: str) -> list[str]:
    """Return case-folded words without articles, and single Chinese characters; citation markers are left out."""
    return [token for token in _TOKEN.findall(_MARKER.sub(" ", text).casefold()) if token not in _ARTICLES]


def token_f1(reply: str, answers: Sequence[str]) -> float:
    """Return the F1 of the token multisets for the best answer, 0..1 (SQuAD)."""
    return max((_f1(Counter(tokens_of(reply)), Counter(tokens_of(answer))) for answer in answers), default=0.0)


def bleu1(reply: str, answers: Sequence[str]) -> float:
    """Return BLEU-1 for the best answer, 0..1: clipped token precision times the brevity penalty (Papineni 2002)."""
    said = tokens_of(reply)
    scores = []
    for answer in answers:
        wanted = Counter(tokens_of(answer))
        shared = sum((Counter(said) & wanted).values())
        length = sum(wanted.values())
        penalty = 1.0 if len(said) >= length else math.exp(1 - length / max(len(said), 1))
        scores.append(penalty * shared / len(said) if said else 0.0)
    return max(scores, default=0.0)


def is_judged_right(model: CompletingLlm, question: str, reply: str, answers: Sequence[str]) -> bool:
    """Ask a language model with JUDGE whether the reply is right. Raises ProviderUnavailable."""
    shown = f"Question: {question}\nAccepted answers: {' | '.join(answers)}\nReply: {reply}"
    asked = [ChatMessage(ChatRole.SYSTEM, JUDGE), ChatMessage(ChatRole.USER, shown)]
    return model.complete(asked).text.strip().upper().startswith("CORRECT")


def _f1(said: Counter[str], wanted: Counter[str]) -> float:
    shared = sum((said & wanted).values())
    return 2 * shared / (sum(said.values()) + sum(wanted.values())) if shared else 0.0
