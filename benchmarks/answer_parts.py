"""Answers the labelled questions without one part of the method at a time; the difference shows the part's effect.

Each question is searched once through REST. The reply is made from the results in this process, as the chat does, so
that all variants see the same passages.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any
from unittest import mock

from benchmarks.client import Client
from vault.chat import rules as chat
from vault.chat.plans import CONSIDERED
from vault.chat.rules import Evidence
from vault.reader.rules import answers, questions
from vault.reader.rules.answer_model import FEATURES, AnswerModel, load_answer_model
from vault.retrieval.fusion import NO_PARTS, Parts, is_relevant

WHOLE = "all parts"
NEVER = re.compile(r"(?!)")  # matches nothing


def remove_parts() -> dict[str, AbstractContextManager[Any]]:
    """Return patches by name: the unchanged method, then one without each part."""
    patched = mock.patch.object
    return {
        WHOLE: nullcontext(),
        "without what the kind of question needs": patched(answers, "_NEEDED", {}),
        "without the name asked for": patched(answers, "_NAME_ASKED", NEVER),
        "without the kind's share of a match": patched(answers, "KIND_WEIGHT", 0.0),
        "without the person asked about": patched(answers, "OF_ANOTHER", 1.0),
        "without words with one meaning": patched(questions, "find_concepts", lambda text: ((), text)),
        "without the question before a passage": patched(answers, "OF_NEIGHBOUR", 0.0),
        "without meaning (dense)": patched(answers, "DENSE_WEIGHT", 0.0),
        "without the order of search": patched(answers, "RANK_WEIGHT", 0.0),
        **{
            f"without {name.replace('_', ' ')}": patched(answers, "load_answer_model", partial(_model_without, name))
            for name in FEATURES
        },
        "without a threshold": patched(answers, "LEAST", 0.0),
        "with one quote": patched(chat, "MOST_QUOTES", 1),
    }


def _model_without(name: str) -> AnswerModel:
    """Return the answer model with the weight 0 for one feature."""
    model = load_answer_model()
    return replace(model, weights={**model.weights, name: 0.0})


def retrieve_passages(client: Client, question: str) -> tuple[Evidence, ...]:
    """Return the search results that are relevant to a question, as evidence for an answer."""
    body = {"query": question, "top_k": CONSIDERED, "explain": True}
    found = client.call("POST", "memories/search/", body)["results"]
    about = [hit for hit in found if is_relevant(_parts(hit["score_parts"]))]
    return tuple(_evidence(marker, hit) for marker, hit in enumerate(about, start=1))


def replies_without(
    questions_found: Mapping[str, tuple[Evidence, ...]],
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each variant's name and its reply to each question. questions_found: passages by question."""
    for name, removed in remove_parts().items():
        with removed:
            yield (
                name,
                {question: chat.extractive_answer(question, found).text for question, found in questions_found.items()},
            )


def _parts(shown: Mapping[str, float]) -> Parts:
    return replace(NO_PARTS, **{name: shown[name] for name in ("lexical", "context", "dense")})


def _evidence(marker: int, shown: Mapping[str, Any]) -> Evidence:
    moment = shown["event_time"] or shown["created_at"]
    return Evidence(
        source=shown["id"],
        version=shown["version"],
        marker=marker,
        text=shown["content"],
        speaker=shown["speaker"] or "",
        time=datetime.fromisoformat(moment.replace("Z", "+00:00")),
        score=shown["score"],
        parts=_parts(shown["score_parts"]),
        session=shown["session_id"] or "",
        position=shown["position"],
        semantic_type=shown["semantic_type"],
    )
