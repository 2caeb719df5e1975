"""The deterministic reader: sentences, what kind each one is, what is worth keeping, what answers a question."""

from vault.reader.rules.answers import Answer, Passage, Quote, answer_of
from vault.reader.rules.extraction import read_statements, unstated_kind
from vault.reader.rules.kinds import Statement, is_question, semantic_type_of, statements
from vault.reader.rules.questions import speaks_of_self
from vault.reader.rules.sentences import sentences

__all__ = [
    "Answer",
    "Passage",
    "Quote",
    "Statement",
    "answer_of",
    "is_question",
    "read_statements",
    "semantic_type_of",
    "sentences",
    "speaks_of_self",
    "statements",
    "unstated_kind",
]
