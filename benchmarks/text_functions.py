"""Lists every function that reads a user's text, with the compiled patterns that it uses.

tests/attacks/test_hostile_texts.py fails for a pattern of the product that is neither here nor in NOT_A_TEXT.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any
from uuid import UUID

from governance.api.fields import refuse_broken_text
from governance.keys.rules import DataKey
from governance.keys.services import TokenMaker
from governance.privacy.pii.addresses import find_addresses, find_unsure_addresses
from governance.privacy.pii.dates import find_birth_dates
from governance.privacy.pii.detector import PatternDetector, rules_for
from governance.privacy.pii.pii_ranges import Span
from governance.vocabulary import PiiKind
from vault.chat.attribution import attribute_sentences
from vault.chat.rules import Evidence, extractive_answer, make_title, markers_in
from vault.content.drafts import CubeDraft
from vault.content.words import Words
from vault.cubes.computations import (
    Computation,
    asked_computation,
    asks_for_count,
    compute_line,
    insert_computations,
)
from vault.cubes.differences import text_difference
from vault.cubes.passages import Passage as QuotedPassage
from vault.cubes.rules import approximate_tokens
from vault.deidentification.deidentifier import find_marks, find_numbers, find_undecided
from vault.deidentification.learning import complete_names, stated_names
from vault.deidentification.names import NameFinder, find_titled_names, make_name_forms
from vault.deidentification.relations import find_relations
from vault.embeddings.passages import split_passages
from vault.exchange.items import is_broken
from vault.graph.rules import contradict, is_consequence
from vault.index.terms import index_of, text_index
from vault.layers.own_facts import GROUPS, asked_group, belongs_to
from vault.layers.statements import agent_statements, asked_fields, find_slot, is_about_self, reconcile
from vault.layers.traits import trait_signs
from vault.lexicon.entities import entities, find_asked_entities
from vault.lexicon.labels import ascii_pieces, find_labels, fold_label
from vault.lexicon.normal import normal_form, remove_accents
from vault.lexicon.questions import asking_share, is_about_questions
from vault.lexicon.recurrences import read_recurrence
from vault.lexicon.resolved_dates import write_dates
from vault.lexicon.temporal_expressions import asks_for_time, mentions_time, remove_times, time_ranges_of
from vault.lexicon.tokens import keywords, language_of, query_terms, single_characters, terms
from vault.namespaces.rules import PathError, check_path, path_before_deletion, private_path
from vault.pipelines.rules import fill_texts
from vault.providers.hashing_embedder import HashingEmbedder
from vault.providers.reranker import OverlapReranker
from vault.reader.rules import (
    Passage,
    about,
    admits_error,
    answer_question,
    apply_correction,
    asks_for_list,
    asks_for_topics,
    classify_semantic_type,
    confirms,
    decides_yes,
    find_changed_value,
    find_links,
    find_touched_goal,
    is_question,
    may_reply,
    memory_call,
    read_cancelled,
    read_correction,
    read_moved,
    read_reply,
    read_statements,
    read_verb,
    remove_values,
    sentences,
    split_question,
    statements,
    tells_of_parting,
    tells_of_partner,
    unstated_kind,
)
from vault.reader.rules.corrections import Correction, begins_with_time
from vault.reconciliation.corrections import ADDS, DENIED, TAKEN_BACK, other_clauses
from vault.retrieval.question import LONGEST_READ, make_question_text
from vault.retrieval.tags import MOST_CHARACTERS
from vault.screening.commands import gives_orders
from vault.screening.texts import Place, Texts, find_places, redact_places, shift_places
from vault.store.wordings import plain
from vault.vocabulary import PiiField
from vault.web.answers import pieces
from vault.web.markdown import markdown_html
from vault.web.memory_rows import excerpt_mark

REGIONS = ("CN", "US", "GB")
NOW = datetime(2026, 11, 23, tzinfo=UTC)
LONGEST_QUESTION = 2_000  # characters, of a question beside a text
# Patterns that read text of the product or the operator, or only a few characters of a user's text.
NOT_A_TEXT = {
    "vault.lexicon.holidays": "_DAYS",  # names of holidays, matched whole
    "governance.prepared": "PLACEHOLDER",  # statements of the product
    "vault.cubes.visibility": "PLACEHOLDER",  # statements of the product
    "governance.privacy.pii.numbers": "BBAN_LENGTH",  # the registry of IBANs
    "governance.object_names": "ID",  # lines of the audit log
    "governance.web.audit_facts": "CODE TIME",  # details that the product recorded, matched whole
    "governance.web.audit_words": "PLACEHOLDER",  # phrases of the product
    "governance.web.pages": "SECRET",  # names of the fields of a form
    "governance.web.log_filter": "LINK",  # lines of the log
    "governance.web.middleware": "ACCEPTABLE_ID",  # 64 characters, matched whole
    "vault.web.forms_page": "POLICY",  # names of policies, of bounded length
    "vault.web.pipeline_forms": "REFERENCE SEPARATOR",  # steps of a pipeline, of bounded length
    "vault.layers.persona_scope": "_SEPARATOR",  # a persona's aliases, of at most 200 characters
    "vault.layers.formats": "_SESSION",  # names of the fields of an imported file
    "governance.api.views": "ETAGS VERSION QUOTED",  # headers, which the server bounds
    "governance.versions": "LIST",  # headers, which the server bounds
    "governance.transport": "_LINE_END _EVENT_END _UNSTORABLE",  # answers of other servers, one character after another
    "vault.index.value_order": "_TIME",  # a value of metadata, matched whole
    "vault.pipelines.rules": "IDS",  # references to steps, matched whole
    "vault.exchange.item_drafts": "FULL_NAME",  # names of packs, matched whole
}


@dataclass(frozen=True)
class TextFunction:
    """A function that reads text. run: takes any text; patterns: module → names of its patterns, separated by
    blanks."""

    name: str
    run: Callable[[str], object]
    patterns: dict[str, str]


@cache
def _maker() -> TokenMaker:
    return TokenMaker(key=DataKey(id=UUID(int=0), secret=bytes(32)))


@cache
def _detector() -> PatternDetector:
    return PatternDetector(REGIONS)


@cache
def _names() -> NameFinder:
    return NameFinder(make_name_forms(["Anna-Maria van der Weiss", "王小明", "patient-17"]))


def _rule(number: int, text: str) -> None:
    list(rules_for(REGIONS)[number](text))


def _metadata(text: str) -> dict[str, Any]:
    """Return metadata with as many names and values as are allowed."""
    return {f"{at} {text[at : at + 10]}": text[at : at + 10] for at in range(0, min(len(text), 8_000), 10)}


def _places(text: str) -> None:
    tags = tuple(text[at : at + 50] for at in range(0, min(len(text), 2_500), 50))
    texts = Texts("", metadata=_metadata(text), tags=tags, speaker=text[:200])
    redact_places(texts, find_places(_detector(), texts, frozenset(PiiField)))


def _move_findings(text: str) -> None:
    """Shift and redact findings: one for every eight characters, half of them replaced."""
    found = [Place(PiiField.CONTENT, 0, Span(PiiKind.PHONE, at, at + 4, "phone")) for at in range(0, len(text) - 4, 8)]
    shift_places(found[::2], found[1::2])
    redact_places(Texts(text), found[1::2])


def _index(text: str) -> None:
    draft = CubeDraft(content=text, title=text[:500], speaker=text[:200])
    words = Words(content=text, title=text[:500], speaker=text[:200], metadata=_metadata(text))
    index_of(_maker(), words, text_index(_maker(), draft))


def _question(text: str) -> None:
    question = make_question_text(_maker(), text)
    known = list(question.names)[:50]
    question.make_terms(known, has_time=True)
    question.find_speakers(known, has_time=True)


def _labels(text: str) -> None:
    asked = fold_label(text[:MOST_CHARACTERS])[:MOST_CHARACTERS]
    ascii_pieces(asked)
    find_labels(asked, [text[at : at + 100] for at in range(0, min(len(text), 10_000), 10)])


def _path(text: str) -> None:
    path_before_deletion(text)
    private_path(text, taken=False, member_id="0")
    try:
        check_path(f"/{text}"[:200])
    except PathError:
        return


def _break_lines(text: str) -> None:
    from rest_framework.serializers import ValidationError

    try:
        refuse_broken_text(text)
    except ValidationError:
        return


def _differences(text: str) -> None:
    """Compare texts that share their pieces in another order; also short ones, which are compared word by word."""
    for part in (text[:1_150], text):
        text_difference(part, f"{part[::-2]}x{part[1::2]}")


def _answer(text: str) -> None:
    extractive_answer(f"{text}?", [Evidence("", 1, 1, text, "", NOW, 1.0)])


def _attribute(text: str) -> None:
    attribute_sentences(text, [Evidence("", 1, 1, text[:LONGEST_QUESTION], "", NOW, 1.0)], text[:LONGEST_QUESTION])


def _compute(text: str) -> None:
    passage = QuotedPassage(text, "user", NOW)
    for kind in Computation:
        compute_line(kind, {1: passage, 2: passage}, 1, NOW.date(), "en")
    insert_computations(text, {1: passage}, "en")


def _join(text: str) -> None:
    find_links(text, [("1", text[:LONGEST_QUESTION]), ("2", text)])
    split_question(text)


PII, LEXICON, READER = "governance.privacy.pii", "vault.lexicon", "vault.reader.rules"
LAYERS, PEOPLE = "vault.layers.statements", "vault.deidentification"
FUNCTIONS = (
    TextFunction(
        "computations",
        _compute,
        {"vault.cubes.computations": "PLACE _BORN _TURNS _AGED _LASTED", f"{LEXICON}.resolved_dates": "_TO _YEAR"},
    ),
    TextFunction(
        "asked computations",
        lambda text: (asked_computation(text), asks_for_count(text)),
        {"vault.cubes.computations": "_KINDS _COUNTED"},
    ),
    TextFunction(
        "recurrences",
        read_recurrence,
        {f"{LEXICON}.recurrences": "_MAY_RECUR _WEEKLY _WEEKDAY _NTH _DAILY _MONTHLY _YEARLY"},
    ),
    TextFunction(
        "joined questions",
        _join,
        {f"{READER}.joins": "_DESCRIBES _KIN _NO_PART_OF_KIN _WORD _SIDE_BY_SIDE _RUN _HAN_RUN _DAY_RUN _HAN_DAY_RUN"},
    ),
    TextFunction("questions for a list", asks_for_list, {f"{READER}.questions": "_LIST"}),
    TextFunction(
        "questions for a day",
        lambda text: asks_for_topics(f"What is on 3 May {text}?"),
        {f"{READER}.questions": "_OF_A_DAY _PLANS"},
    ),
    TextFunction("mail addresses", partial(_rule, 0), {f"{PII}.mails": "MAIL _PACKAGE _REPOSITORY"}),
    TextFunction(
        "cards",
        partial(_rule, 1),
        {
            f"{PII}.numbers": "CARD ISSUERS SEPARATORS",
            f"{PII}.patterns": "LONG_NUMBER",
            f"{PII}.context": "_WORD _LETTER",
        },
    ),
    TextFunction("IBANs", partial(_rule, 2), {f"{PII}.numbers": "IBAN_CHECK IBAN"}),
    TextFunction(
        "national ids",
        partial(_rule, 3),
        {f"{PII}.numbers": "RESIDENT_ID PROVINCE SSN BARE_SSN NINO_DIGITS NINO_PREFIX"},
    ),
    TextFunction("network addresses", partial(_rule, 4), {f"{PII}.network": "IPV4 IPV6 MAC LETTER"}),
    TextFunction(
        "secrets",
        partial(_rule, 5),
        {
            f"{PII}.secrets": "MAKES PEM_BEGIN PEM_END PEM_OTHER PEM_REST IN_ADDRESS INTRODUCED PASSWORDS CODE "
            "NO_SECRET LATIN DIGIT_OR_MARK"
        },
    ),
    TextFunction("phone numbers", partial(_rule, 6), {f"{PII}.phones": "BLOB GROUP"}),
    TextFunction(
        "numbers of states",
        partial(_rule, 7),
        {f"{PII}.state_numbers": "PIECE FORM FORM_START RUN PAPER WORDS DAY SEPARATORS"},
    ),
    TextFunction(
        "addresses",
        lambda text: (list(find_addresses(text)), list(find_unsure_addresses(text))),
        {
            f"{PII}.addresses": "STREET POSTCODE INTRODUCED HAN_RUN AREA ROAD HOUSE LEAD _STOPS _HAN_DOOR LOW_STREET"
            " TOWN_AFTER POSTCODE_WORD UNSURE"
        },
    ),
    TextFunction(
        "dates of birth",
        lambda text: list(find_birth_dates(text)),
        {f"{PII}.dates": "DATE BEFORE AFTER ASKED RIGHT_BEFORE", f"{PII}.worded_dates": "WORDED_DATE"},
    ),
    TextFunction(
        "names of people",
        lambda text: (_names().find(text), make_name_forms([text]), list(find_titled_names(text))),
        {
            f"{PEOPLE}.names": "_SEPARATORS _HAN_NAME _LATIN_PART _IS_REFERENCE _DOUBLE _SURE _SURE_HAN _LEFT_TITLE"
            " _LEFT_INITIAL _RIGHT_INITIAL _LEFT_PARTICLE _RIGHT_PARTICLE _SUFFIX _BETWEEN _HAN_SUFFIX"
            " _HANDLE _PIECE _SPACED _SPACED_HAN"
        },
    ),
    TextFunction(
        "relations of people",
        lambda text: list(find_relations(text)),
        {f"{PEOPLE}.relations": "_RELATION _FRIEND _REVERSED _KIN_NAME _HAN_RELATION _HAN_REVERSED"},
    ),
    TextFunction(
        "stated names",
        lambda text: (list(stated_names(text)), complete_names(["Anna Weiss"], [text])),
        {f"{PEOPLE}.learning": "STATED HAN_STATED _HAN_UNSURE"},
    ),
    TextFunction(
        "texts about people",
        lambda text: (list(find_numbers(text)), find_marks(text), list(find_undecided(text))),
        {
            f"{PEOPLE}.deidentifier": "NUMBER_WORD LONG_NUMBER PART PLACEHOLDER LEFT_HAN_NAME LAST_DIGITS"
            " ACCOUNT HANDLE LETTER_DIGIT LOW_NAMED INITIALS SPACED PINYIN HAN_LETTER BESIDE_PLACEHOLDER",
            f"{PEOPLE}.called_names": "CALLED AFTER_PLACEHOLDER _NO_NAME _BESIDE _DOUBLE_NAME _PLAIN_NAME"
            " _GIVEN_NAME _SINGLE _RUN",
            f"{PEOPLE}.scripts": "_OTHER _GREEK_SIGN _RUN _BETWEEN",
        },
    ),
    TextFunction(
        "personal data of a text", lambda text: _detector().find(text), {f"{PII}.spelling": "_FOLDABLE _DROPPED"}
    ),
    TextFunction("personal data of metadata", _places, {}),
    TextFunction("redaction", _move_findings, {}),
    TextFunction("orders to a model", gives_orders, {"vault.screening.commands": "_INVISIBLE _BLANKS _ORDERS"}),
    TextFunction("sentences", sentences, {f"{READER}.sentences": "_END _BULLET _LAST_WORD _CLAUSE"}),
    TextFunction("statements", statements, {f"{READER}.kinds": "_KINDS"}),
    TextFunction(
        "read_statements",
        lambda text: read_statements(text, speaker="user", said_at=NOW),
        {
            f"{READER}.remarks": "ASKED_TO_STORE BARE_REFERENCE COMMAND FEELING_NOW OPENING PRONOUN_START REACTION "
            "REMARK_ON_TALK TRAILING_QUESTION CLAUSE_END CONDITION FAREWELL REASON LIST_ITEM REMINDER LEAD_IN PARTING "
            "OWN_PARTS PERSON_START FRAGMENT HAN_FRAGMENT SPEAKS NAMES_IT"
        },
    ),
    TextFunction(
        "what a request is about",
        lambda text: (
            about(text[:LONGEST_QUESTION], [Passage("1", text, 1.0)], own=False),
            about(text[:LONGEST_QUESTION], [Passage("1", text, 1.0)], own=False, is_statement=True),
        ),
        {f"{READER}.topics": "_NEGATED"},
    ),
    TextFunction(
        "what is off",
        lambda text: (read_cancelled(text), read_moved(text), tells_of_parting(text), tells_of_partner(text)),
        {
            f"{READER}.cancellations": "_CANCELLED _MOVED _NOTICE _BETWEEN _SENTENCE_END _CONDITION _PARTED _PARTNER "
            "_EMPTY _ENDING"
        },
    ),
    TextFunction(
        "replies",
        lambda text: (
            may_reply(text),
            read_reply("Where do you live?", text),
            read_reply("你住在哪里？", text),
            read_reply(text, "In Lisbon."),
            read_reply(text, "No, never"),
            read_reply(text, "没有"),
        ),
        {
            f"{READER}.replies": "_YES _NO _HAN_YES _HAN_NO _SAYS_NOTHING _OFFERS _OF_TALK _HAN_EVADES _EVADES "
            "_SECRET _TWO _IS_NUMBER _IS_SPAN _IS_RHYTHM _IS_PLACE _IS_NAME _IS_TIME _ANY _HAN_NUMBER _HAN_OFFERS "
            "_LEAD _HAN_LEAD _NAMING _PLACED _NO_NAME _SPEAKER _IS_SENTENCE _NOW _CHOICE _POSSESSIVE _ASKED_YES "
            "_ASKED_NO _ASKED_VALUE _HAN_VALUE _HAN_SUBJECT _HAN_TWICE"
        },
    ),
    TextFunction(
        "short corrections",
        lambda text: (
            read_correction(text),
            remove_values(text),
            apply_correction(Correction(0, "9:40"), [text]),
            admits_error(text),
            begins_with_time(text),
            find_changed_value("at 9:40", [text]),
        ),
        {
            f"{READER}.corrections": "_VALUES _ANNOUNCED _DENIED _BARE _ERRED _SAME_PLACE _RIGHT "
            "_ENDS_WITH_PART _BEFORE_TIME"
        },
    ),
    TextFunction(
        "clauses of an ended statement",
        lambda text: (other_clauses(text, "I moved to Bruges."), other_clauses("I live in Ghent, I sing.", text)),
        {"vault.reconciliation.corrections": "_CLAUSES _STATES _HAS_SUBJECT"},
    ),
    TextFunction(
        "memory_call",
        lambda text: (memory_call(text, said_at=NOW, past=[text]), confirms(text)),
        {
            f"{READER}.calls": "_FORGET _SAID _SUMMARISE _SUMMARY_VERB _SELF _OWN_WORDS _MY _NOTHING_TO_FORGET "
            "_CORRECTS "
            "_CONFIRMS _PRONOUN _POSSESSIVE _HAN_PRONOUN _WHAT_ABOUT _FIRST_PERSON _ABOUT_ASKER"
        },
    ),
    TextFunction("split_passages", split_passages, {"vault.embeddings.passages": "_ENDS"}),
    TextFunction("read_verb", read_verb, {f"{READER}.verbs": "_PATTERNS"}),
    TextFunction("find_touched_goal", lambda text: find_touched_goal(text, [text]), {f"{READER}.goals": "_LINKS"}),
    TextFunction(
        "what a statement says of a person",
        lambda text: (
            find_slot(text),
            is_about_self(text),
            asked_fields(text),
            agent_statements(text),
            reconcile(text, NOW, []),
        ),
        {
            LAYERS: "_FIELDS _ASKED_FIELDS _SINGLE _CAR _IS_NOW _EMPLOYED _SELF _OF_OTHERS _OWN _LIKES"
            " _TAKEN_BACK _TAIL _AGENT _NOTHING _FAILURE"
        },
    ),
    TextFunction(
        "groups of facts about oneself",
        lambda text: (asked_group(text), [belongs_to(text, group) for group in GROUPS]),
        {"vault.layers.own_facts": "GROUPS _GIVEN_UP _GOAL"},
    ),
    TextFunction("signs of traits", trait_signs, {"vault.layers.traits": "AGAINST"}),
    TextFunction("unstated_kind", unstated_kind, {f"{READER}.remarks": "GREETING THANKS"}),
    TextFunction(
        "what a statement takes back",
        lambda text: (TAKEN_BACK.search(text), DENIED.search(text), ADDS.search(text)),
        {"vault.reconciliation.corrections": "TAKEN_BACK DENIED ADDS"},
    ),
    TextFunction("is_question", is_question, {f"{READER}.kinds": "_ENDS_ASKING"}),
    TextFunction(
        "classify_semantic_type",
        classify_semantic_type,
        {
            f"{READER}.patterns": "QUESTION_START CHINESE_QUESTION CHINESE_NOT_ASKING SMALL_TALK PROFILE GOAL "
            "PREFERENCE EVENT"
        },
    ),
    TextFunction(
        "answer_question",
        lambda text: answer_question(text, [Passage("1", text, 1.0)], 3),
        {
            f"{READER}.answers": "_NUMBER _PLACE _REASON _PAST _NEEDED _ASSISTANT_SAID _ASKER_SAID _NAME_ASKED _NAMES",
            f"{READER}.questions": "_KINDS _FIRST_PERSON _TAG _PARTICLES _ASKED_KIND",
            f"{LEXICON}.concepts": "CONCEPTS",
        },
    ),
    TextFunction(
        "decides_yes",
        lambda text: decides_yes(f"Do I {text}", text),
        {
            f"{READER}.verdicts": "_NEGATION _ENDED _CLAUSE _UNCERTAIN _ASKER _ASKS_ABOUT_ASKER _ASKER_HAN _OTHER "
            "_OTHER_HAN _PAST_QUESTION _PAST_WORD"
        },
    ),
    TextFunction(
        "write_dates",
        lambda text: write_dates(text, NOW),
        {f"{LEXICON}.resolved_dates": "_RELATIVE _AHEAD _PAST _CLAUSE_END _VERB"},
    ),
    TextFunction("extractive_answer", _answer, {}),
    TextFunction(
        "memories behind an answer",
        _attribute,
        {"vault.chat.rules": "KNOWS_NOTHING", "vault.chat.attribution": "NUMBER _VERDICT _CLAIM _WELCOME"},
    ),
    TextFunction(
        "citations", lambda text: (markers_in(text, 9), list(pieces(text, ()))), {"vault.cubes.passages": "MARKER"}
    ),
    TextFunction("conversation title", make_title, {}),
    TextFunction("Markdown", lambda text: markdown_html(text, {1, 2}), {"vault.web.markdown": "CITE"}),
    TextFunction("index of a memory", _index, {"vault.index.marks": "WORD"}),
    TextFunction(
        "differences",
        _differences,
        {"vault.cubes.differences": "TOKENS SENTENCES LINES WORD"},
    ),
    TextFunction(
        "hits of a list",
        lambda text: excerpt_mark(text, f"{text[:990]}x"),
        {"vault.web.memory_rows": "WORDS CHINESE"},
    ),
    TextFunction("approximate_tokens", approximate_tokens, {}),
    TextFunction(
        "terms",
        lambda text: (terms(text), single_characters(text)),
        {
            f"{LEXICON}.tokens": "_TOKENS _HYPHENED _THOUSANDS _ACCENTS _ASCII_WORD _ASCII_TOKENS",
            f"{LEXICON}.days": "_DAYS _SIGNS",
        },
    ),
    TextFunction("query_terms", query_terms, {f"{LEXICON}.tokens": "_QUESTION_PHRASES _CHINESE_QUESTION"}),
    TextFunction(
        "language_of", language_of, {f"{LEXICON}.tokens": "_LETTER _HAN_RUN _KANA_RUN _HANGUL_RUN _LATIN_RUN"}
    ),
    TextFunction(
        "keywords",
        keywords,
        {f"{LEXICON}.tokens": "_FUNCTION_WORDS _UNSPACED_LETTER _CJK_RUN _PHRASE_WORD"},
    ),
    TextFunction(
        "questions",
        lambda text: (asking_share(text), is_about_questions(text)),
        {f"{LEXICON}.questions": "_END _MAY_ASK _ABOUT_QUESTIONS"},
    ),
    TextFunction(
        "entities",
        entities,
        {
            f"{LEXICON}.entities": "_HANDLE _QUOTED _ARTICLE _LATIN _ENDS_SENTENCE _HAN_LETTER _POSSESSIVE _PERSON "
            "_TITLED _NAMED _FOREIGN _KNOWN_PLACE _PLACE"
        },
    ),
    TextFunction("find_asked_entities", find_asked_entities, {}),
    TextFunction("labels", _labels, {f"{LEXICON}.labels": "_ASCII_RUN _EDGE _SPACED"}),
    TextFunction(
        "normal forms",
        lambda text: (normal_form("NFKC", text), remove_accents(text)),
        {f"{LEXICON}.normal": "_ACCENTS _TOO_MANY"},
    ),
    TextFunction(
        "times",
        lambda text: (time_ranges_of(text[:LONGEST_READ], NOW), remove_times(text[:LONGEST_READ], but_names=True)),
        {
            f"{LEXICON}.dates": "_BEFORE_A_MONTH _BEFORE_A_SCORE _TIME_COMES _BEFORE_A_SEASON KINDS",
            f"{LEXICON}.temporal_expressions": "_LEAD _TAIL _TO_LAST _AND_LAST _BETWEEN _BETWEEN_TAIL _SAME_ALWAYS",
        },
    ),
    TextFunction(
        "mentions of times",
        lambda text: (mentions_time(text), asks_for_time(text)),
        {f"{LEXICON}.temporal_expressions": "_NAMED _RUN _ASKED"},
    ),
    TextFunction(
        "question",
        _question,
        {"vault.retrieval.question": "_HAPPENED", f"{LEXICON}.tokens": "_UNSPACED_RUN"},
    ),
    TextFunction(
        "links",
        lambda text: (contradict(text, f"{text} not 3"), is_consequence(text)),
        {"vault.graph.rules": "_CAUSED _NEGATION _NUMBER _NO_NEGATION _ASKS"},
    ),
    TextFunction("namespace path", _path, {"vault.namespaces.rules": "PATH NOT_IN_A_PART DELETED_END"}),
    TextFunction(
        "broken characters", _break_lines, {"governance.api.fields": "BROKEN", "vault.cubes.filters": "BROKEN"}
    ),
    TextFunction("broken characters of a file", is_broken, {"vault.exchange.items": "BROKEN"}),
    TextFunction("texts of steps", lambda text: fill_texts(text, ["x"] * 99), {"vault.pipelines.rules": "TEXT"}),
    TextFunction("words of a copy", plain, {"vault.store.wordings": "_WORDS"}),
    TextFunction(
        "hashing embedder",
        lambda text: HashingEmbedder().embed([text]),
        {"vault.providers.hashing_embedder": "_RUNS _CJK_RUN"},
    ),
    TextFunction(
        "overlap reranker",
        lambda text: OverlapReranker().score(text[:LONGEST_QUESTION], [text]),
        {"vault.providers.reranker": "_WORD"},
    ),
)
