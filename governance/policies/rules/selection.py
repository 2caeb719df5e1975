"""Selection of memories by a policy, and the choice of the most specific policies, all of them if several. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Generic, Protocol, TypeVar
from uuid import UUID

from pydantic import ConfigDict, Field

Word = Annotated[str, Field(min_length=1, max_length=100)]
Words = Annotated[frozenset[Word], Field(max_length=50)]
PATH = r"^((/[^/\x00]+)+)?$"
Path = Annotated[str, Field(max_length=200, pattern=PATH)]


@dataclass(frozen=True)
class Where:
    """Selects memories in or below a namespace, of one of the kinds, with one of the tags. Empty fields match all."""

    namespace: Path = ""
    types: Words = frozenset()
    semantic_types: Words = frozenset()
    sensitivities: Words = frozenset()
    tags: Words = frozenset()

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Facts:
    """The facts of a memory that policies compare. None means unknown, if no single memory is meant."""

    namespace: str
    type: str | None = None
    semantic_type: str | None = None
    sensitivity: str | None = None
    tags: frozenset[str] | None = None


class Document(Protocol):
    """The document of a policy that selects memories, of any kind."""

    @property
    def where(self) -> Where: ...


D = TypeVar("D", bound=Document)
D_co = TypeVar("D_co", bound=Document, covariant=True)


@dataclass(frozen=True)
class Rule(Generic[D_co]):
    """An enabled policy with its current document."""

    policy_id: UUID
    name: str
    version: int
    document: D_co

    def __str__(self) -> str:
        """Return the rule's name as decisions state it."""
        return f"policy:{self.name}@{self.version}"


def specificity(where: Where) -> tuple[int, int]:
    """Return how narrow a selection is: first the depth of its namespace, then the number of other criteria."""
    named = (where.types, where.semantic_types, where.sensitivities, where.tags)
    return where.namespace.count("/"), sum(1 for words in named if words)


def matches(where: Where, facts: Facts) -> bool:
    """Return whether a memory with these facts is selected for certain: an unknown fact matches no criterion."""
    return (
        _is_under(facts.namespace, where.namespace)
        and _is_wanted(where.types, facts.type)
        and _is_wanted(where.semantic_types, facts.semantic_type)
        and _is_wanted(where.sensitivities, facts.sensitivity)
        and (not where.tags or bool(where.tags & (facts.tags or frozenset())))
    )


def may_match(where: Where, facts: Facts) -> bool:
    """Return whether a memory with these facts may be selected: an unknown fact may have any value, and the memory may
    lie in a namespace below.
    """
    below = None in {facts.type, facts.semantic_type, facts.sensitivity, facts.tags}
    return (
        (_is_under(facts.namespace, where.namespace) or (below and _is_under(where.namespace, facts.namespace)))
        and (facts.type is None or _is_wanted(where.types, facts.type))
        and (facts.semantic_type is None or _is_wanted(where.semantic_types, facts.semantic_type))
        and (facts.sensitivity is None or _is_wanted(where.sensitivities, facts.sensitivity))
        and (facts.tags is None or not where.tags or bool(where.tags & facts.tags))
    )


def most_specific_rules(rules: Iterable[Rule[D]], facts: Facts) -> list[Rule[D]]:
    """Return the most specific matching rules, several if equally specific. Sorted by name."""
    found = [rule for rule in rules if matches(rule.document.where, facts)]
    most = max((specificity(rule.document.where) for rule in found), default=None)
    return sorted((rule for rule in found if specificity(rule.document.where) == most), key=lambda rule: rule.name)


def levels(rules: Iterable[Rule[D]]) -> list[list[Rule[D]]]:
    """Return the rules grouped by falling specificity: the first group with a match decides."""
    by_level: dict[tuple[int, int], list[Rule[D]]] = {}
    for rule in rules:
        by_level.setdefault(specificity(rule.document.where), []).append(rule)
    return [by_level[level] for level in sorted(by_level, reverse=True)]


def rule_names(rules: Sequence[Rule[D]]) -> str:
    """Return the joined names of the rules that decided together."""
    return " ".join(str(rule) for rule in rules)


def _is_under(path: str, root: str) -> bool:
    return not root or path == root or path.startswith(f"{root}/")


def _is_wanted(wanted: frozenset[str], found: str | None) -> bool:
    return not wanted or found in wanted
