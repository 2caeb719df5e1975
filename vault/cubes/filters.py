"""The filter language of the contract, from JSON to a queryset condition.

`{"AND": […]}`, `{"OR": […]}`, `{"NOT": {…}}`; leaves `{"field": {"op": value}}` or `{"field": value}`; siblings are
ANDed. `{"namespace": {"under": path}}` matches a namespace and all below it.
Sealed fields are matched by their keyed marks, clear ones by their columns.
"""

import operator as op
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now
from django.utils.dateparse import parse_datetime
from django.utils.timezone import get_current_timezone

from governance.errors import FieldError, Invalid
from governance.keys.services import TokenMaker
from governance.models import Persona
from governance.personas.services import PERSONA_NAME, is_persona_name
from governance.time_range import OUT_OF_RANGE
from vault.index import marks
from vault.index.terms import WORD_KIND
from vault.lexicon.tokens import terms
from vault.models import ArchivedPosting, CubeUse, Posting
from vault.models.cube import AskedOfEachRow
from vault.models.namespace import NOTHING
from vault.namespaces.rules import PathError, check_path
from vault.vocabulary import Layer, ListedState, MemoryType, Modality, SemanticType, Sensitivity, Source, State

BROKEN = re.compile("[\\x00\\ud800-\\udfff]")
LENGTH_OF_DATE = len("2026-05-01")
DEEPEST = 8
MOST_LEAVES = 100
MOST_JOINED = 3
MOST_LOOKUPS = 100  # of marks, each a subquery
EMPTY = "an empty filter would match every memory"
MOST_VALUES = 400  # names, operators and values of one filter together
EQUALITY = ("eq", "ne", "in", "contains")
ORDER = {"gt": "__gt", "gte": "__gte", "lt": "__lt", "lte": "__lte"}
HOLDS = {"gt": op.gt, "gte": op.ge, "lt": op.lt, "lte": op.le}
ENUMERATIONS: dict[str, type[StrEnum]] = {
    "state": ListedState,
    "layer": Layer,
    "type": MemoryType,
    "semantic_type": SemanticType,
    "modality": Modality,
    "source": Source,
    "sensitivity": Sensitivity,
}
PLAIN = {"language": "language", "namespace": "namespace__path", "persona": "persona__name"}
UNDER = "under"  # of namespaces: with all below it
MOMENTS = ("event_time", "valid_from", "valid_to", "created_at", "updated_at", "expires_at")
SAID_AT = "said_at"  # the time that the client gave a message, else when it was stored
EXISTS = "exists"
# Columns that are null without a value, and of keyed fields the column beside their marks.
PRESENT = {"persona": "persona_id", "session_id": "session_token"}
PRESENT |= {name: name for name in ("event_time", "valid_from", "valid_to", "expires_at")}
NUMBERS = ("importance", "heat")
DIALOGUE_ONLY = "dialogue_only"
CONTENT = "content"  # by its words, which the index has; so are title and speaker
KNOWN = (
    "id",
    *ENUMERATIONS,
    DIALOGUE_ONLY,
    *PLAIN,
    *MOMENTS,
    SAID_AT,
    *NUMBERS,
    "tags",
    *marks.KEYED_FIELDS,
    CONTENT,
    "metadata.<key>",
)


@dataclass
class _FilterReader:
    """A single reading of a filter, which counts its leaves and its look-ups of sealed fields."""

    maker: TokenMaker
    archived: bool
    leaves: int = 0
    lookups: int = 0

    def read_node(self, node: Any, path: str, depth: int) -> Q:
        if not isinstance(node, Mapping):
            raise _fault(path, "an object is needed")
        if depth > DEEPEST:
            raise _fault(path, f"filters may be {DEEPEST} levels deep")
        if not node and depth > 1:
            raise _fault(path, EMPTY)
        condition = Q()
        for name, value in node.items():
            condition &= self._read_part(str(name), value, f"{path}.{name}".removeprefix("."), depth)
        return condition

    def _read_part(self, name: str, value: Any, path: str, depth: int) -> Q:
        if name == "NOT":
            return ~self.read_node(value, path, depth + 1)
        if name in {"AND", "OR"}:
            return self._read_connective(name, value, path, depth)
        return self._read_leaf(name, value, path)

    def _read_connective(self, name: str, value: Any, path: str, depth: int) -> Q:
        if not isinstance(value, list) or not value:
            raise _fault(path, "a list of filters is needed")
        parts = [self.read_node(part, f"{path}.{index}", depth + 1) for index, part in enumerate(value)]
        condition = parts[0]
        for part in parts[1:]:
            condition = condition & part if name == "AND" else condition | part
        return condition

    def _read_leaf(self, name: str, value: Any, path: str) -> Q:
        self.leaves += 1
        if self.leaves > MOST_LEAVES:
            raise _fault(path, f"a filter may have {MOST_LEAVES} leaves")
        operators = value if isinstance(value, Mapping) else {"eq": value}
        if not operators:
            raise _fault(path, 'an operator is needed, as in {"eq": …}')
        condition = Q()
        for operator, operand in operators.items():
            condition &= self._read_condition(name, str(operator), operand, path)
        return condition

    def _read_condition(self, name: str, operator: str, operand: Any, path: str) -> Q:
        if operator == EXISTS:
            return self._read_presence(name, operand, path)
        if name in marks.KEYED_FIELDS or name.startswith("metadata."):
            return self._read_keyed(name, operator, operand, path)
        if name == CONTENT:
            return self._read_words(operator, operand, path)
        if name == "tags":
            return _any_condition(operator, operand, path, lambda value: Q(tags__contains=[_read_text(value, path)]))
        if name in ENUMERATIONS:
            kind = ENUMERATIONS[name]
            return _any_condition(
                operator, operand, path, lambda value: _member_condition(name, _read_member(kind, value, path))
            )
        if name == "namespace" and operator == UNDER:
            return _under_condition(operand, path)
        if name in PLAIN:
            return _any_condition(
                operator, operand, path, lambda value: _plain_condition(name, _read_reference(name, value, path))
            )
        if name == DIALOGUE_ONLY:
            return _any_condition(operator, operand, path, lambda value: Q(is_dialogue_only=_read_flag(value, path)))
        if name == "id":
            return _any_condition(operator, operand, path, lambda value: Q(id=_read_uuid(value, path)))
        if name == SAID_AT:
            given = _order_condition(SAID_AT, operator, operand, path)
            return given & Q(said_at__isnull=False) | Q(said_at=None) & _order_condition(
                "created_at", operator, operand, path
            )
        if name in MOMENTS or name in NUMBERS:
            return _order_condition(name, operator, operand, path)
        raise _fault(path, f"unknown field; known are {', '.join(KNOWN)}")

    def _read_presence(self, name: str, operand: Any, path: str) -> Q:
        is_wanted = _read_flag(operand, path)
        if name in PRESENT:
            return Q(**{f"{PRESENT[name]}__isnull": not is_wanted})
        if name not in marks.EXACT or not name.startswith("metadata."):
            known = ", ".join([*PRESENT, *sorted(field for field in marks.EXACT if field.startswith("metadata."))])
            raise _fault(path, f"`exists` is known of {known}")
        self._count_lookup(path)
        found = mark_condition(marks.presence_mark(self.maker, name), archived=self.archived)
        return found if is_wanted else ~found

    def _read_keyed(self, name: str, operator: str, operand: Any, path: str) -> Q:
        self._count_lookup(path)
        if operator in ORDER and name.startswith("metadata."):
            return self._read_range(name, operator, operand, path)
        values = _read_operands(operator, operand, path)
        texts = [_read_text(value, path) if name in marks.KEYED_FIELDS else value for value in values]
        if operator == "contains":
            wanted = [marks.part_mark(self.maker, name, text) for text in texts]
        else:
            wanted = [mark for text in texts for mark in marks.value_marks(self.maker, name, text)]
        found = mark_condition(*wanted, archived=self.archived)
        return ~found if operator == "ne" else found

    def _read_words(self, operator: str, operand: Any, path: str) -> Q:
        """Return the condition that a memory has all words of a text."""
        if operator != "contains":
            raise _fault(path, "unknown operator; known here is contains")
        words = dict.fromkeys(terms(_read_text(operand, path)))
        if not words:
            raise _fault(path, "words are needed that say more than the, of or 的")
        condition, tokens = Q(), self.maker.tokens(WORD_KIND)
        for word in words:
            self._count_lookup(path)
            condition &= mark_condition(tokens[word], archived=self.archived)
        return condition

    def _read_range(self, name: str, operator: str, operand: Any, path: str) -> Q:
        try:
            wanted = marks.range_marks(self.maker, name, operator, operand)
        except ValueError:
            raise _fault(path, "a number or a time such as 2026-05-01 is needed") from None
        return mark_condition(*wanted, archived=self.archived) if wanted else NOTHING

    def _count_lookup(self, path: str) -> None:
        self.lookups += 1
        if self.lookups > MOST_LOOKUPS:
            raise _fault(path, f"a filter may look up sealed fields {MOST_LOOKUPS} times")


def filter_read(maker: TokenMaker, body: Mapping[str, Any], *, path: str = "filters", archived: bool = False) -> Q:
    """Read a filter into a condition on cubes. archived: it matches archived memories too.

    An empty filter matches everything. Empty parts inside of one are refused: NOT of nothing would match everything.
    Raises Invalid with the path of the fault in the filter, and the known names there.
    """
    _refuse_broken(body, path)
    return _join_few_lookups(_FilterReader(maker, archived).read_node(body, path, depth=1))


def filter_refuse_empty(body: Mapping[str, Any]) -> None:
    """Refuse a filter that limits nothing, before what matches is changed. `filter_read` refuses empty parts inside.

    Raises Invalid.
    """
    if not body:
        raise _fault("filters", EMPTY)


def message_condition(body: Any) -> Q:
    """Return the condition of lists and searches on dialogue-only messages: greetings, questions, assistants' replies.

    It excludes them unless the filter `body` asks for `semantic_type` `dialogue` or names `dialogue_only`, and excludes
    caches and adapters unless it names `type`.
    """
    texts = Q() if names_type(body) else Q(type=MemoryType.PLAINTEXT)
    return texts if asks_for_messages(body) else texts & Q(is_dialogue_only=False)


def names_type(body: Any) -> bool:
    """Return whether a filter names `type`: otherwise caches and adapters are not listed."""
    if isinstance(body, list):
        return any(map(names_type, body))
    return isinstance(body, Mapping) and ("type" in body or any(map(names_type, body.values())))


def asks_for_messages(body: Any, *, is_excluded: bool = False) -> bool:
    """Return whether a filter names `dialogue_only`, or the type `dialogue` outside of NOT (is_excluded)."""
    if isinstance(body, list):
        return any(asks_for_messages(part, is_excluded=is_excluded) for part in body)
    if not isinstance(body, Mapping):
        return False
    if DIALOGUE_ONLY in body or (not is_excluded and _has_value(body.get("semantic_type"), SemanticType.DIALOGUE)):
        return True
    return any(
        asks_for_messages(body[name], is_excluded=is_excluded or name == "NOT")
        for name in ("AND", "OR", "NOT")
        if name in body
    )


def asks_for_state(body: Any, state: State) -> bool:
    """Return whether a filter names a state."""
    if isinstance(body, list):
        return any(asks_for_state(part, state) for part in body)
    if not isinstance(body, Mapping):
        return False
    parts = (part for name, part in body.items() if name != "state")
    return _has_value(body.get("state"), state) or any(asks_for_state(part, state) for part in parts)


def _has_value(operand: Any, value: str) -> bool:
    """Return whether a leaf asks for `value` by any operator but `ne`."""
    if isinstance(operand, Mapping):
        return any(_has_value(held, value) for operator, held in operand.items() if operator != "ne")
    return operand == value or (isinstance(operand, list) and value in operand)


def _refuse_broken(body: Any, path: str) -> None:
    """Raise Invalid for characters that no memory can hold, and for more than MOST_VALUES names and values."""
    waiting, values = [body], 0
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            waiting += [*part, *part.values()]
        elif isinstance(part, list):
            waiting += part
        else:
            values += 1
        if values > MOST_VALUES:
            raise _fault(path, f"a filter may hold {MOST_VALUES} names and values")
        if isinstance(part, str) and BROKEN.search(part):
            raise _fault(path, "NUL and lone surrogates cannot be searched for")


def _join_few_lookups(condition: Q) -> Q:
    """Turn the first few look-ups of an AND into joins. PostgreSQL's planner takes seconds to order a hundred joins."""
    if condition.connector != Q.AND or condition.negated:
        return condition
    lookups = 0
    few = Q()
    for child in condition.children:
        found = _find_lookup(child)
        lookups += found is not None
        if found is None or lookups <= MOST_JOINED:
            few.children.append(child)
        else:
            asked = Q(AskedOfEachRow(found.query))
            few.children.append(~asked if isinstance(child, Q) else asked)
    return few


def _find_lookup(child: Any) -> Exists | None:
    """Return the subquery of `child`, negated or not; None if it is no look-up."""
    if isinstance(child, Q) and child.negated and len(child.children) == 1:
        (child,) = child.children
    return child if isinstance(child, Exists) else None


def mark_condition(*any_of: int, archived: bool = False) -> Q:
    """Return the condition of cubes with any of these marks. archived: it matches archived cubes too."""
    return (
        Q(_exists_mark(Posting, any_of)) | Q(_exists_mark(ArchivedPosting, any_of))
        if archived
        else Q(_exists_mark(Posting, any_of))
    )


def _exists_mark(index: type[Posting | ArchivedPosting], any_of: Sequence[int]) -> Exists:
    rows = index.objects.filter(tenant_id=OuterRef("tenant_id"), cube_id=OuterRef("id"))
    return Exists(rows.filter(term=any_of[0]) if len(any_of) == 1 else rows.filter(term__in=any_of))


def persona_ids(references: Iterable[str]) -> list[UUID]:
    """Return the ids of the personas with these ids or names, also of removed ones. One query if there are any.

    A name may have the form of an id, as clients' users have.
    """
    names = list(references)
    ids = [UUID(reference) for reference in names if _is_id(reference)]
    found = Persona.objects.filter(name__in=names).values_list("id", flat=True) if names else ()
    return [*ids, *found]


def _any_condition(operator: str, operand: Any, path: str, condition_of: Callable[[Any], Q]) -> Q:
    """Return the condition that any of the operand's values matches; `ne` negates it."""
    condition, *others = map(condition_of, _read_operands(operator, operand, path))
    for other in others:
        condition |= other
    return ~condition if operator == "ne" else condition


def _read_operands(operator: str, operand: Any, path: str) -> list[Any]:
    """Return the values of an operand: a list for `in`, one value for the other operators. Raises Invalid."""
    if operator not in EQUALITY:
        raise _fault(path, f"unknown operator {operator}; known here are {', '.join(EQUALITY)}")
    if operator != "in":
        return [operand]
    if not isinstance(operand, list) or not 1 <= len(operand) <= MOST_LEAVES:
        raise _fault(path, f"`in` takes a list of 1 to {MOST_LEAVES} values")
    return operand


def _order_condition(name: str, operator: str, operand: Any, path: str) -> Q:
    if operator in ORDER:
        value = _read_comparable(name, operand, path)
        if name == "heat":
            return _heat_condition(f"heat{ORDER[operator]}", value, unused=HOLDS[operator](0.0, value))
        return Q(**{f"{name}{ORDER[operator]}": value})
    return _any_condition(operator, operand, path, lambda value: _equal_condition(name, value, path))


def _equal_condition(name: str, value: Any, path: str) -> Q:
    comparable = _read_comparable(name, value, path)
    if name == "heat":
        return _heat_condition("heat", comparable, unused=comparable == 0)
    return Q(**{name: comparable})


def _heat_condition(lookup: str, value: Any, *, unused: bool) -> Q:
    """Return the condition on heat. unused: it is true for heat 0, that of unused memories, which have no row."""
    used = CubeUse.objects.filter(tenant_id=OuterRef("tenant_id"), cube_id=OuterRef("id"))
    holds = Q(**{lookup: value})
    return ~Q(Exists(used.filter(~holds))) if unused else Q(Exists(used.filter(holds)))


def _read_comparable(name: str, value: Any, path: str) -> datetime | float:
    if name in NUMBERS:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _fault(path, "a number is needed")
        try:
            return float(value)
        except OverflowError:
            raise _fault(path, "a smaller number is needed") from None
    return read_moment_or_date(value, path)


def read_moment_or_date(value: Any, path: str) -> datetime:
    """Read an RFC 3339 time, or a date as its first moment in the reader's zone. Raises Invalid."""
    if not isinstance(value, str) or len(value) != LENGTH_OF_DATE:
        return read_moment(value, path)
    midnight = read_moment(f"{value}T00:00:00Z", path).replace(tzinfo=None)
    try:
        return midnight.replace(tzinfo=get_current_timezone()).astimezone(UTC)
    except OverflowError:
        raise _fault(path, OUT_OF_RANGE) from None


def read_moment(value: Any, path: str) -> datetime:
    """Read an RFC 3339 time with its offset. Raises Invalid."""
    try:
        parsed = parse_datetime(value) if isinstance(value, str) else None
        if parsed is not None and parsed.tzinfo is not None:
            return parsed.astimezone(UTC)
    except (ValueError, OverflowError):
        pass  # answered below, like every other text that is no time
    raise _fault(path, "a time with an offset is needed, as in 2026-05-01T12:00:00Z")


def _member_condition(name: str, value: str) -> Q:
    """Return the condition that a column has a value of an enumeration. What has expired counts as expired at once."""
    if value == ListedState.DELETED:
        return Q(deleted_at__isnull=False)
    condition = Q(**{name: value})
    return condition | Q(expires_at__lte=Now()) if value == ListedState.EXPIRED else condition


def _plain_condition(name: str, value: str) -> Q:
    named = Q(**{PLAIN[name]: value})
    return named | Q(**{f"{name}_id": value}) if name != "language" and _is_id(value) else named


def _under_condition(value: Any, path: str) -> Q:
    """Return the condition that the namespace is at this path or below it. Raises Invalid."""
    try:
        root = check_path(_read_text(value, path))
    except PathError as fault:
        raise _fault(path, f"a path is needed: {fault.message}") from fault
    return Q(namespace__path=root) | Q(namespace__path__startswith=f"{root}/")


def _read_reference(name: str, value: Any, path: str) -> str:
    """Return the id, path or name in a filter; its form is checked, not its existence."""
    text = _read_text(value, path)
    if name == "namespace" and not _is_id(text):
        try:
            check_path(text)
        except PathError as fault:
            raise _fault(path, f"an id or a path is needed: {fault.message}") from fault
    if name == "persona" and not is_persona_name(text):
        raise _fault(path, f"an id or a name is needed: {PERSONA_NAME}")
    return text


def _read_uuid(value: Any, path: str) -> UUID:
    text = _read_text(value, path)
    if not _is_id(text):
        raise _fault(path, "an id is needed")
    return UUID(text)


def _is_id(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def _read_text(value: Any, path: str) -> str:
    if not isinstance(value, str) or "\x00" in value:
        raise _fault(path, "a text is needed")
    return value


def _read_flag(value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        raise _fault(path, "true or false is needed")
    return value


def _read_member(kind: type[StrEnum], value: Any, path: str) -> str:
    if not isinstance(value, str) or value not in set(kind):
        raise _fault(path, f"one of {', '.join(kind)} is needed")
    return str(value)


def _fault(path: str, message: str) -> Invalid:
    return Invalid(errors=[FieldError(path, message)])
