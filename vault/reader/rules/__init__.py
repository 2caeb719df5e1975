"""The deterministic reader: sentences, what kind each one is, what is worth keeping, what answers a question."""

from vault.reader.rules.answers import Passage, Quote, best_sentences
from vault.reader.rules.extraction import read_statements, time_of, unstated_kind
from vault.reader.rules.kinds import Statement, is_question, semantic_type_of, statements
from vault.reader.rules.sentences import sentences

__all__ = [
    "Passage",
    "Quote",
    "Statement",
    "best_sentences",
    "is_question",
    "read_statements",
    "semantic_type_of",
    "sentences",
    "statements",
    "time_of",
    "unstated_kind",
]
