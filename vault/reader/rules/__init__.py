"""The deterministic reader: sentences, what kind each one is, what is worth keeping, what answers a question."""

from vault.reader.rules.answers import Answer, Passage, Quote, about, answer_of
from vault.reader.rules.calls import (
    Intent,
    MemoryCall,
    confirms,
    memory_call,
    names_in,
    needs_past,
    whole_question,
    without_correction,
)
from vault.reader.rules.extraction import chosen_statements, read_statements, unstated_kind
from vault.reader.rules.goals import goal_touched, may_touch_goal
from vault.reader.rules.kinds import Statement, is_question, semantic_type_of, statements
from vault.reader.rules.questions import asks_for_topics, speaks_of_self
from vault.reader.rules.sentences import is_lead_in, sentences

__all__ = [
    "Answer",
    "Intent",
    "MemoryCall",
    "Passage",
    "Quote",
    "Statement",
    "about",
    "answer_of",
    "asks_for_topics",
    "chosen_statements",
    "confirms",
    "goal_touched",
    "is_lead_in",
    "is_question",
    "may_touch_goal",
    "memory_call",
    "names_in",
    "needs_past",
    "read_statements",
    "semantic_type_of",
    "sentences",
    "speaks_of_self",
    "statements",
    "unstated_kind",
    "whole_question",
    "without_correction",
]
