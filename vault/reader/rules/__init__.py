"""The deterministic reader: sentences and their kinds, statements worth storing, and answers to questions."""

from vault.reader.rules.answers import (
    FRAME,
    LONGEST_REPLY,
    Answer,
    Passage,
    Quote,
    answer_question,
    holds_number,
)
from vault.reader.rules.calls import (
    Intent,
    MemoryCall,
    confirms,
    memory_call,
    names_in,
    needs_past,
    remove_correction,
    whole_question,
)
from vault.reader.rules.cancellations import read_cancelled, read_moved, tells_of_parting, tells_of_partner
from vault.reader.rules.corrections import (
    LONGEST_CORRECTION,
    admits_error,
    apply_correction,
    find_changed_value,
    read_correction,
    remove_values,
)
from vault.reader.rules.extraction import (
    Decision,
    Reading,
    chosen_statements,
    explain_reading,
    is_fragment,
    read_statements,
    rephrased_statements,
    unstated_kind,
)
from vault.reader.rules.goals import find_touched_goal, may_touch_goal
from vault.reader.rules.joins import find_links, split_days, split_question
from vault.reader.rules.kinds import Statement, classify_semantic_type, is_question, statements
from vault.reader.rules.questions import asks_for_list, asks_for_topics, speaks_of_self
from vault.reader.rules.replies import may_reply, read_reply
from vault.reader.rules.sentences import is_lead_in, sentences
from vault.reader.rules.topics import about
from vault.reader.rules.verbs import read_tag, read_verb
from vault.reader.rules.verdicts import Clause, asks_yes_or_no, contradicts, decides_yes, read_clauses

__all__ = [
    "FRAME",
    "LONGEST_CORRECTION",
    "LONGEST_REPLY",
    "Answer",
    "Clause",
    "Decision",
    "Intent",
    "MemoryCall",
    "Passage",
    "Quote",
    "Reading",
    "Statement",
    "about",
    "admits_error",
    "answer_question",
    "apply_correction",
    "asks_for_list",
    "asks_for_topics",
    "asks_yes_or_no",
    "chosen_statements",
    "classify_semantic_type",
    "confirms",
    "contradicts",
    "decides_yes",
    "explain_reading",
    "find_changed_value",
    "find_links",
    "find_touched_goal",
    "holds_number",
    "is_fragment",
    "is_lead_in",
    "is_question",
    "may_reply",
    "may_touch_goal",
    "memory_call",
    "names_in",
    "needs_past",
    "read_cancelled",
    "read_clauses",
    "read_correction",
    "read_moved",
    "read_reply",
    "read_statements",
    "read_tag",
    "read_verb",
    "remove_correction",
    "remove_values",
    "rephrased_statements",
    "sentences",
    "speaks_of_self",
    "split_days",
    "split_question",
    "statements",
    "tells_of_parting",
    "tells_of_partner",
    "unstated_kind",
    "whole_question",
]
