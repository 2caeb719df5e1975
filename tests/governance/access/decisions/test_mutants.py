# ruff: noqa: E501  the mutants are tables
"""The oracle is awake: break any rule of the engine, of a condition or of a query, and it disagrees."""

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from inspect import getsource
from random import Random
from types import ModuleType
from typing import Any

import pytest
from django.db import transaction

from governance.access.decisions import conditions, principal_grants, rules
from governance.access.decisions.principal_grants import find_grants_on
from governance.access.decisions.rules import Granted, Target
from governance.actor import Actor
from governance.database import tenant_transaction
from governance.vocabulary import Effect, Permission
from tests.factories import World
from tests.governance.access.decisions.oracle import NOON, Caller, applies, may
from tests.governance.access.decisions.test_oracle import people
from tests.governance.access.decisions.worlds import (
    ACTIONS,
    OF_MEMORY,
    OF_SPACE,
    SAYS,
    Stored,
    check_list,
    context_of,
    document_of,
    imagine,
    store,
)
from tests.harness.evidence import Evidence
from vault.cubes.lookup import cube_target
from vault.models import cube, namespace
from vault.namespaces.services import namespace_target

pytestmark = pytest.mark.full

WORLDS = 8
RULES = [
    ("deny overrides", "grant.effect is Effect.DENY", "False"),
    ("deny closes what needs it", "grant.action in denying_actions(action)", "grant.action is action"),
    ("deny closes no more", "grant.action in denying_actions(action)", "True"),
    ("a locked namespace is not written", "any(level.locked for level in target.chain)", "False"),
    ("a lock is on writing alone", "action is Action.WRITE and any(level.locked", "any(level.locked"),
    ("scopes are a ceiling", "if actor.scopes is not None and not any(", "if False and not any("),
    ("grants need an allowance", "grant.effect is Effect.ALLOW and", ""),
    ("an allowance opens what it says", "grant.action in allowing_actions(action) and reaches", "reaches"),
    ("a namespace's grant leaves private memory", "or target.open_within", "or True"),
    ("a memory's own grant opens it", "grant.object_id == target.object_id or", ""),
    ("an owner's private things", "all(owner == actor.member_id for owner in target.private_to)", "True"),
    ("all who keep it private count", "if not all(owner ==", "if not any(owner =="),
    ("those who govern see private things", "if target is None or sees_private(actor):", "if target is None:"),
    ("only owners share", "if action in {Action.SHARE, Action.GOVERN} and", "if False and"),
    (
        "owning one thing of the chain is enough",
        "any(_owns(actor, level) for level",
        "all(_owns(actor, level) for level",
    ),
    ("curated things are their owner's to write", "return all(not level.curated or", "return True or all("),
    ("a bound key stays in its namespaces", "outside = target.path is not None and", "outside = False and"),
    ("a bound key stays with its persona", "of_others = target.object_type in OF_PERSONAS", "of_others = False"),
    ("a bound key passes nothing on", "if permission not in BOUND:", "if False:"),
    ("an auditor reads nothing", "RoleName.AUDITOR: AUDITING", "RoleName.AUDITOR: READING | AUDITING"),
    ("a viewer writes nothing", "RoleName.VIEWER: READING | CHATTING", "RoleName.VIEWER: READING | CHATTING | WRITING"),
    (
        "to share is to read",
        "Action.SHARE: frozenset({Action.READ, Action.SHARE})",
        "Action.SHARE: frozenset({Action.SHARE})",
    ),
    (
        "to share is not to write",
        "frozenset({Action.READ, Action.SHARE})",
        "frozenset({Action.READ, Action.WRITE, Action.SHARE})",
    ),
    (
        "to write is not to share",
        "frozenset({Action.READ, Action.WRITE})",
        "frozenset({Action.READ, Action.WRITE, Action.SHARE})",
    ),
]
CONDITIONS = [
    ("every part counts", "all(part is True for part in parts)", "any(part is True for part in parts)"),
    ("unknown allows nothing", "all(part is True for part in parts)", "all(part is not False for part in parts)"),
    ("unknown denies", "all(part is not False for part in parts)", "all(part is True for part in parts)"),
    (
        "what is not said is unknown",
        "return stated in _texts(values) if stated else None",
        "return stated in _texts(values)",
    ),
    ("a foreign address is none of ours", "any(address in _network(network)", "any(True"),
    ("nights go over midnight", "at >= start or at < end", "at >= start"),
    ("days end", "start <= at < end if", "start <= at if"),
    ("days begin", "start <= at < end if", "at < end if"),
    ("an unknown part is unknown", "if judge else None", "if judge else True"),
]
QUERIES = [
    ("a denied memory is not listed", cube.CubeQuerySet, "exclude_denied", "has(OBJECT_TYPE, Effect.DENY)", "has('', Effect.DENY)"),
    ("nor one in a denied namespace", cube.CubeQuerySet, "exclude_denied", 'has("namespace", Effect.DENY)', 'has("", Effect.DENY)'),
    ("grants open memories", cube, "_by_grant", "has(OBJECT_TYPE, Effect.ALLOW)", "has('', Effect.ALLOW)"),
    ("grants on namespaces open them", cube, "_by_grant", 'has("namespace", Effect.ALLOW)', 'has("", Effect.ALLOW)'),
    ("but not private ones of others", cube, "_by_grant", "& of_namespace", ""),
    ("a role reads", cube, "_by_role", "if not reads_content(actor):", "if False:"),
    ("private memory is its owner's", cube, "_by_role", "& own_or_open", ""),
    ("private namespaces are their owner's", cube, "_by_role", "(mine | not_private) &", ""),
    ("private memory is its owner's beside grants, too", cube, "_by_role_without_join", "& own_or_open", ""),
    ("private namespaces are their owner's beside grants, too", cube, "_by_role_without_join", "mine_or_open, ", ""),
    ("a bound key lists its persona's", cube, "persona_condition", "if actor.binding is not None", "if False"),
    ("a bound key lists its namespaces", namespace, "bound_to", "if actor.binding is None", "if True or actor.binding is None"),
    ("a root is no prefix of a name", namespace, "bound_to", 'f"{root}/"', "root"),
    ("denied namespaces are not listed", namespace.NamespaceQuerySet, "visible_to", "Effect.DENY):", "Effect.DENY) and False:"),
    ("granted namespaces are listed", namespace, "_in_reach_of", "Effect.ALLOW):", "Effect.ALLOW) and False:"),
    ("what has ended grants nothing", principal_grants, "_live", "expires_at__gt=", "expires_at__lt="),
    ("nor what others hold", principal_grants, "_live", ", group_id__in=own_grants.groups", ""),
    ("nor what does not hold here", principal_grants, "_filter_by_effect", "rows.filter(_condition_is_met(own_grants, effect))", "rows"),
    ("nor what is another action", principal_grants, "grants_of", "sorted(actions)", "sorted(Action)"),
    ("deleted memories are not listed", cube.CubeQuerySet, "stored", "deleted_at=None", ""),
    ("expired memories are not listed", cube.CubeQuerySet, "stored", "Q(expires_at__gt=Now())", "Q(expires_at__lt=Now())"),
]  # fmt: skip


@dataclass(frozen=True)
class Question:
    actor: Actor
    permission: Permission
    target: Target
    granted: tuple[Granted, ...]
    expected: bool


def test_every_broken_rule_shows(world: World, evidence: Evidence) -> None:
    questions = [question for stored in worlds(world) for question in _questions(stored)]
    for name, old, new in RULES:
        decide = _module(rules, old, new)["decide"]
        assert any(_ask(decide, question) is not question.expected for question in questions), name
    assert all(_ask(rules.decide, question) is question.expected for question in questions)
    evidence(row=3, name="mutants-of-rules", figures={"mutants": len(RULES), "killed": len(RULES)})


def test_every_broken_condition_shows(evidence: Evidence) -> None:
    random, now = Random(2), datetime(2026, 1, 1, NOON, tzinfo=UTC)
    told = [imagine(random) for _ in range(40)]
    grants = [grant for world in told for grant in world.grants if grant.conditions]
    callers = [Caller(member=0, role="viewer", says=dict(says)) for says in SAYS]
    pairs = [(grant, document_of(grant, now), caller) for grant in grants for caller in callers]
    for name, old, new in CONDITIONS:
        holds = _module(conditions, old, new)["holds"]
        wrong = (
            holds(document, Effect(grant.effect), context_of(caller), now) is not applies(grant, caller)
            for grant, document, caller in pairs
        )
        assert any(wrong), name
    evidence(row=3, name="mutants-of-conditions", figures={"mutants": len(CONDITIONS), "killed": len(CONDITIONS)})


def test_every_broken_query_shows(world: World, evidence: Evidence) -> None:
    alive = list(QUERIES)
    for stored in worlds(world):
        assert not _disagrees(stored)
        for mutant in list(alive):
            _, owner, function, old, new = mutant
            with replace_function(owner, function, old, new):
                if _disagrees(stored):
                    alive.remove(mutant)
    assert [name for name, *_ in alive] == []
    evidence(row=3, name="mutants-of-queries", figures={"mutants": len(QUERIES), "killed": len(QUERIES)})


def worlds(world: World) -> Iterator[Stored]:
    """Some worlds, always the same, each in the database while it is looked at."""
    members = people(world)
    for seed in range(WORLDS):
        with tenant_transaction(world.acme.id):
            random = Random(seed)
            yield store(imagine(random), members, random)
            transaction.set_rollback(True)


def _questions(stored: Stored) -> Iterator[Question]:
    places: list[tuple[int | None, int, Target]] = [
        (number, memory.space, cube_target(stored.memories[number]))
        for number, memory in enumerate(stored.told.memories)
        if not memory.gone
    ]
    places += [(None, number, namespace_target(row)) for number, row in enumerate(stored.spaces)]
    for caller, actor in stored.callers:
        for memory, space, target in places:
            granted = tuple(find_grants_on(actor, target))
            for action, permission in zip(ACTIONS, OF_SPACE if memory is None else OF_MEMORY, strict=True):
                yield Question(actor, permission, target, granted, may(stored.told, caller, action, memory, space))


def _ask(decide: Any, question: Question) -> bool:
    allowed = decide(question.actor, question.permission, question.target, question.granted).allowed
    assert isinstance(allowed, bool)
    return allowed


def _disagrees(stored: Stored) -> bool:
    return any(fault for caller, actor in stored.callers for fault in check_list(stored, caller, actor))


def _module(module: ModuleType, old: str, new: str) -> dict[str, Any]:
    """Return the names of a module whose source has `new` in place of `old`."""
    source = getsource(module)
    assert old in source, old
    defined: dict[str, Any] = {"__name__": module.__name__}
    exec(source.replace(old, new, 1), defined)
    return defined


@contextmanager
def replace_function(owner: Any, name: str, old: str, new: str) -> Iterator[None]:
    """A function whose text is another for a while, wherever it was imported."""
    intact = getattr(owner, name)
    source = textwrap.dedent(getsource(intact))
    assert old in source, old
    defined: dict[str, Any] = {}
    exec(source.replace(old, new, 1), intact.__globals__, defined)
    places = [module for module in {owner, principal_grants, cube, namespace} if getattr(module, name, None) is intact]
    for place in places:
        setattr(place, name, defined[name])
    try:
        yield
    finally:
        for place in places:
            setattr(place, name, intact)
