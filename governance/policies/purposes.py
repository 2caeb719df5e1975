"""Purpose binding inside a query: conditions for memories that the actor may not read for its stated purpose."""

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_

from django.db.models import Q

from governance.actor import Actor
from governance.policies.active import policies_active
from governance.policies.rules import Level, Where, purpose_levels, specificity

EVERYTHING = Q(pk__isnull=False)  # Django would give up composing a query of which it knows the answer


def denied_by_purpose(actor: Actor, *, type_field: str = "type") -> Q | None:
    """Return the condition for memories denied to the purpose of `actor`; None if none is. The system is denied none.

    `type_field`: the field with the memory type. The condition is never null, so that it can be negated.
    """
    if actor.is_system:
        return None
    return denied_rows(purpose_levels(policies_active(actor).purpose, actor.context.purpose), type_field=type_field)


def namespaces_denied_by_purpose(actor: Actor) -> Q | None:
    """Return the condition for namespaces all of whose memories are denied; None if a binding has other criteria."""
    if actor.is_system:
        return None
    rules = policies_active(actor).purpose
    if any(specificity(rule.document.where)[1] for rule in rules):
        return None
    return _denial_condition(
        purpose_levels(rules, actor.context.purpose), lambda where: _namespace_condition(where, "path")
    )


def list_purposes(actor: Actor) -> list[str]:
    """Return the purposes that the tenant's policies name."""
    return sorted({purpose for rule in policies_active(actor).purpose for purpose in rule.document.purposes})


def denied_rows(levels: Sequence[Level], *, type_field: str = "type") -> Q | None:
    """Return rules.is_denied as a condition."""
    return _denial_condition(levels, lambda where: where_condition(where, type_field=type_field))


def where_condition(where: Where, *, type_field: str = "type") -> Q:
    """Return rules.matches as a condition: for the memories that a policy is about."""
    condition = _namespace_condition(where, "namespace__path")
    for field, words in (
        (type_field, where.types),
        ("semantic_type", where.semantic_types),
        ("sensitivity", where.sensitivities),
    ):
        if words:
            condition &= Q(**{f"{field}__in": sorted(words)})
    return condition & Q(tags__overlap=sorted(where.tags)) if where.tags else condition


def _namespace_condition(where: Where, path: str) -> Q:
    if not where.namespace:
        return EVERYTHING
    return Q(**{path: where.namespace}) | Q(**{f"{path}__startswith": f"{where.namespace}/"})


def _denial_condition(levels: Sequence[Level], condition: Callable[[Where], Q]) -> Q | None:
    """Return the condition of all levels, in which a more specific level overrides the less specific."""
    denied: Q | None = None
    for level in reversed(levels):
        if denied is not None:
            denied &= ~_any_condition(level.matching, condition)
        if level.denying:
            here = _any_condition(level.denying, condition)
            denied = here if denied is None else here | denied
    return denied


def _any_condition(selections: Sequence[Where], condition: Callable[[Where], Q]) -> Q:
    return reduce(or_, map(condition, selections))
