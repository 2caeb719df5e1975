"""Worlds to try the rules in: members, keys, personas, namespaces, memories, grants; told to the oracle, and stored."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

from governance.access.decisions.grantables import grantables, permission_ids
from governance.access.decisions.principal_grants import find_grants_on, grants_of, principal_grants
from governance.access.decisions.rules import Granted, Target, decide
from governance.actor import Actor, Binding, CallContext
from governance.database import clear_transaction_cache
from governance.ids import uuid7
from governance.models import AccessGroup, ApiKey, GrantCondition, Member, Persona, Role
from governance.vocabulary import Action, Channel, Effect, Permission, PrincipalKind, RoleName, Scope
from tests.governance.access.decisions.oracle import NOON, Caller, Facts, Grant, Memory, Space, may
from vault.cubes.lookup import cube_target
from vault.models import Cube, CubeGrant, Namespace, NamespaceGrant
from vault.namespaces.services import namespace_target

MEMBERS = ("owner", "admin", "editor", "editor", "viewer", "viewer", "auditor")
PERSONAS, KEYS, SPACES, MEMORIES, GRANTS = 3, 4, 5, 14, 26
SAMPLED = 2  # of the places, for each caller: there the product itself looks for its grants
LONG_AGO, FAR_AWAY = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
SAYS = (
    {"channel": "api", "purpose": "treatment", "session_id": "s1", "address": "10.0.0.7"},
    {"channel": "chat", "purpose": "billing", "address": "192.0.2.1"},
    {"channel": "web"},
)
ACTIONS = ("read", "write", "share", "govern")
OF_MEMORY = (Permission.MEMORY_READ, Permission.MEMORY_UPDATE, Permission.ACCESS_SHARE, Permission.ACCESS_GOVERN)
OF_SPACE = (Permission.MEMORY_READ, Permission.MEMORY_CREATE, Permission.ACCESS_SHARE, Permission.ACCESS_GOVERN)


@dataclass
class Stored:
    """A world in the database of the test; places in the lists are those of the oracle's."""

    told: Facts
    tenant_id: UUID
    members: list[Member]
    keys: list[ApiKey]
    personas: list[Persona]
    spaces: list[Namespace]
    memories: list[Cube]
    callers: list[tuple[Caller, Actor]]


def imagine(random: Random, *, memories: int = MEMORIES, grants: int = GRANTS) -> Facts:
    """Some namespaces, memories in them, and grants on both."""
    spaces = [
        Space(
            kind=random.choice(["private", "private", "shared", "shared", "expert"]),
            owner=random.randrange(len(MEMBERS)),
            read_only=random.random() < 0.2,
            path=("/a", "/a/b", "/ab", "/c", "/d")[number],
        )
        for number in range(SPACES)
    ]
    for space in spaces:
        if space.kind == "shared" and random.random() < 0.7:
            space.owner = None
    things = [_memory(random) for _ in range(memories)]
    return Facts(spaces, things, [_grant(random, memories) for _ in range(grants)])


def _memory(random: Random) -> Memory:
    return Memory(
        space=random.randrange(SPACES),
        owner=random.choice([None, *range(len(MEMBERS))]),
        level=random.choice(["private", "shared", "shared", "read_only"]),
        persona=random.choice([None, *range(PERSONAS)]),
        gone=random.random() < 0.1,
    )


def _grant(random: Random, memories: int) -> Grant:
    holder: tuple[str, object] = random.choice(
        [
            ("role", random.choice(MEMBERS)),
            ("member", random.randrange(len(MEMBERS))),
            ("key", random.randrange(KEYS)),
            ("persona", random.randrange(PERSONAS)),
        ]
    )
    about = random.choice([("space", random.randrange(SPACES)), ("memory", random.randrange(memories))])
    return Grant(
        holder=holder,
        about=about,
        action=random.choice(ACTIONS),
        effect=random.choice(["allow", "allow", "deny"]),
        ended=random.random() < 0.15,
        conditions=_conditions(random) if random.random() < 0.5 else {},
    )


def _conditions(random: Random) -> dict[str, Any]:
    possible: dict[str, Any] = {
        "purpose": random.choice([["treatment"], ["billing", "treatment"]]),
        "channel": random.choice([["chat"], ["api", "web"]]),
        "session_id": ["s1"],
        "address": ["10.0.0.0/8"],
        "hours": random.choice([(8, 18), (18, 8), (18, 13), (13, 15), (8, 12), (12, 13)]),
        "phase_of_the_moon": "full",
    }
    return {name: possible[name] for name in random.sample(list(possible), random.choice([1, 1, 2]))}


def store(told: Facts, members: list[Member], random: Random) -> Stored:
    """Write the world as rows; inside a transaction that is rolled back afterwards. members: as MEMBERS has them."""
    tenant_id = members[0].tenant_id
    roles = {role.name: role for role in Role.objects.all()}
    personas = [
        Persona(id=uuid7(), tenant_id=tenant_id, kind="user", name=f"persona {number}", member=members[number + 2])
        for number in range(PERSONAS)
    ]
    Persona.objects.bulk_create(personas)
    spaces = [
        Namespace(
            id=uuid7(),
            tenant_id=tenant_id,
            path=space.path,
            kind=space.kind,
            read_only=space.read_only,
            owner=None if space.owner is None else members[space.owner],
        )
        for space in told.spaces
    ]
    Namespace.objects.bulk_create(spaces)
    memories = [_cube(tenant_id, memory, spaces, members, personas, random) for memory in told.memories]
    Cube.objects.bulk_create(memories)
    keys, callers = _callers(tenant_id, members, personas, random)
    stored = Stored(told, tenant_id, members, keys, personas, spaces, memories, callers)
    _store_grants(stored, roles)
    clear_transaction_cache()
    return stored


def _cube(
    tenant_id: UUID,
    told: Memory,
    spaces: list[Namespace],
    members: list[Member],
    personas: list[Persona],
    random: Random,
) -> Cube:
    gone = random.choice(["deleted_at", "expires_at"]) if told.gone else None
    return Cube(
        id=uuid7(),
        tenant_id=tenant_id,
        namespace=spaces[told.space],
        owner_id=None if told.owner is None else members[told.owner].id,
        persona=None if told.persona is None else personas[told.persona],
        access_level=told.level,
        deleted_at=LONG_AGO if gone == "deleted_at" else None,
        expires_at=LONG_AGO if gone == "expires_at" else random.choice([None, FAR_AWAY]),
        type="plaintext",
        layer="long_term",
        modality="text",
        language="en",
        state="generated",
        source="api",
        reader="verbatim",
        semantic_type="fact",
        sensitivity="internal",
        content_hash=b"",
        token_count=1,
        term_count=1,
    )


def _callers(
    tenant_id: UUID, members: list[Member], personas: list[Persona], random: Random
) -> tuple[list[ApiKey], list[tuple[Caller, Actor]]]:
    """Every member in a browser, some as a persona, and some keys; each in another context."""
    plain = [Caller(member=number, role=role) for number, role in enumerate(MEMBERS)]
    as_persona = [Caller(member=number + 2, role=MEMBERS[number + 2], persona=number) for number in range(PERSONAS)]
    keys = [_key_caller(number, random) for number in range(KEYS)]
    rows = [ApiKey(id=uuid7(), tenant_id=tenant_id, member=members[key.member]) for key in keys]
    callers = [*plain, *as_persona, *keys]
    for caller in callers:
        caller.says = dict(random.choice(SAYS))
    return rows, [(caller, _actor(tenant_id, caller, members, rows, personas)) for caller in callers]


def _key_caller(number: int, random: Random) -> Caller:
    member = random.randrange(len(MEMBERS))
    bound = random.choice([None, None, *range(PERSONAS)])
    return Caller(
        member=member,
        role=MEMBERS[member],
        key=number,
        scopes=set(random.sample([str(scope) for scope in Scope], random.choice([1, 2, 4]))),
        bound_persona=bound,
        bound_paths=random.choice([(), (), ("/a",), ("/a/b", "/c")]),
        persona=bound,
    )


def _actor(
    tenant_id: UUID, caller: Caller, members: list[Member], keys: list[ApiKey], personas: list[Persona]
) -> Actor:
    key = None if caller.key is None else keys[caller.key]
    bound = None if caller.bound_persona is None else personas[caller.bound_persona].id
    return Actor(
        tenant_id=tenant_id,
        principal_kind=PrincipalKind.API_KEY if key else PrincipalKind.MEMBER,
        principal_id=key.id if key else members[caller.member].id,
        member_id=members[caller.member].id,
        role=RoleName(caller.role),
        scopes=None if caller.scopes is None else frozenset(Scope(scope) for scope in caller.scopes),
        request_id="request-of-a-test",
        context=context_of(caller),
        persona_id=None if caller.persona is None else personas[caller.persona].id,
        binding=Binding(bound, caller.bound_paths) if bound or caller.bound_paths else None,
    )


def context_of(caller: Caller) -> CallContext:
    says = caller.says
    return CallContext(
        channel=Channel(says["channel"]),
        purpose=says.get("purpose", ""),
        session=says.get("session_id", ""),
        address=says.get("address", ""),
    )


def _store_grants(stored: Stored, roles: dict[str, Role]) -> None:
    ids = {
        "role": {name: role.id for name, role in roles.items()},
        "member": {number: row.id for number, row in enumerate(stored.members)},
        "key": {number: row.id for number, row in enumerate(stored.keys)},
        "persona": {number: row.id for number, row in enumerate(stored.personas)},
    }
    groups = {
        (kind, which): AccessGroup(
            tenant_id=stored.tenant_id,
            kind="api_key" if kind == "key" else kind,
            principal_id=ids[kind][which],  # type: ignore[index]
        )
        for kind, which in {grant.holder: None for grant in stored.told.grants}
    }
    AccessGroup.objects.bulk_create(groups.values())
    conditions = _conditions_store(stored)
    kept: dict[object, tuple[Grant, GrantCondition | None]] = {}
    for grant in stored.told.grants:
        condition = conditions.get(_fingerprint(grant))
        same = (grant.holder, grant.about, grant.action, grant.effect, condition and condition.id)
        kept.setdefault(same, (grant, condition))  # given once
    stored.told.grants[:] = [grant for grant, _ in kept.values()]
    for about, model in (("memory", CubeGrant), ("space", NamespaceGrant)):
        rows = [
            _grant_row(stored, model, grant, groups[grant.holder], condition)
            for grant, condition in kept.values()
            if grant.about[0] == about
        ]
        model.objects.bulk_create(rows)


def _conditions_store(stored: Stored) -> dict[str, GrantCondition]:
    """One row for all grants under the same conditions."""
    now = datetime.now(UTC)
    rows = {
        _fingerprint(grant): GrantCondition(
            tenant_id=stored.tenant_id, document=document_of(grant, now), fingerprint=uuid7().bytes * 2
        )
        for grant in stored.told.grants
        if grant.conditions
    }
    GrantCondition.objects.bulk_create(rows.values())
    return rows


def _fingerprint(grant: Grant) -> str:
    return repr(sorted(grant.conditions.items()))


def document_of(grant: Grant, now: datetime) -> dict[str, Any]:
    """The conditions of a grant as they are stored. The worlds' noon is now: hours are told from there."""
    document = {name: value for name, value in grant.conditions.items() if name != "hours"}
    if "hours" in grant.conditions:
        start, end = grant.conditions["hours"]
        document["daily"] = {"from": _clock(now, start), "until": _clock(now, end)}
    return document


def _clock(now: datetime, hour: int) -> str:
    """A time of day as far from `now` as `hour` is from the worlds' noon; half an hour earlier, off its edges."""
    moment = now + timedelta(hours=hour - NOON) - timedelta(minutes=30)
    return moment.time().replace(microsecond=0).isoformat()


def _grant_row(
    stored: Stored,
    model: type[CubeGrant] | type[NamespaceGrant],
    grant: Grant,
    group: AccessGroup,
    condition: GrantCondition | None,
) -> Any:
    objects: list[UUID] = [row.id for row in (stored.memories if model is CubeGrant else stored.spaces)]
    return model(
        tenant_id=stored.tenant_id,
        content_object_id=objects[grant.about[1]],
        group=group,
        permission_id=permission_ids(model)[Action(grant.action)],
        effect=Effect(grant.effect),
        condition=condition,
        expires_at=LONG_AGO if grant.ended else None,
        given_by_kind=PrincipalKind.SYSTEM,
        given_by=UUID(int=0),
    )


def disagreements(stored: Stored, random: Random) -> Iterator[str]:
    """Yield the disagreements of the engine, directly or inside a query, with the oracle. An empty text for each
    question.
    """
    places: list[tuple[int | None, int, Target]] = [
        (number, memory.space, cube_target(stored.memories[number]))
        for number, memory in enumerate(stored.told.memories)
        if not memory.gone  # then nothing is found to be asked about
    ]
    places += [(None, number, namespace_target(row)) for number, row in enumerate(stored.spaces)]
    for caller, actor in stored.callers:
        given = grants_everywhere(actor)
        sample = {place[2].object_id for place in random.sample(places, SAMPLED)}
        for memory, space, target in places:
            granted = sorted(
                (grant for level in target.chain for grant in given[level.object_id]), key=lambda grant: grant.id
            )
            if target.object_id in sample:
                yield "" if granted == find_grants_on(actor, target) else f"{caller} {target}: not {granted}"
            yield from _ask(stored, caller, actor, granted, memory, space, target)
        yield from check_list(stored, caller, actor)


def grants_everywhere(actor: Actor) -> dict[UUID, list[Granted]]:
    """Return the grants of each object by the filters of `find_grants_on`, with one query for all objects of a kind."""
    found = defaultdict[UUID, list[Granted]](list)
    for kind in grantables():
        actions = {pk: action for action, pk in permission_ids(kind.grants).items()}
        for effect in Effect:
            if principal_grants(actor).has(kind.object_type, effect):
                rows = grants_of(actor, kind.object_type, effect, Action)
                for id, object_id, permission in rows.values_list("id", "content_object_id", "permission_id"):
                    found[object_id].append(Granted(id, effect, actions[permission], object_id))
    return found


def _ask(
    stored: Stored,
    caller: Caller,
    actor: Actor,
    granted: list[Granted],
    memory: int | None,
    space: int,
    target: Target,
) -> Iterator[str]:
    for action, permission in zip(ACTIONS, OF_SPACE if memory is None else OF_MEMORY, strict=True):
        decision = decide(actor, permission, target, granted)
        expected = may(stored.told, caller, action, memory, space)
        yield "" if decision.allowed == expected else f"{caller} {action} {target}: {decision}, not {expected}"


def check_list(stored: Stored, caller: Caller, actor: Actor) -> Iterator[str]:
    """A list is asked for first: scopes are no matter of the query. What is left is what reading it would say."""
    unscoped = Caller(**{**vars(caller), "scopes": None})
    seen = set(Cube.objects.visible_to(actor).values_list("id", flat=True))
    for number, memory in enumerate(stored.told.memories):
        expected = may(stored.told, unscoped, "read", number, memory.space)
        agrees = (stored.memories[number].id in seen) == expected
        yield "" if agrees else f"{caller} lists {memory}: not {expected}"
    spaces = set(Namespace.objects.visible_to(actor).values_list("id", flat=True))
    for number, space in enumerate(stored.told.spaces):
        expected = may(stored.told, unscoped, "read", None, number)
        yield "" if (stored.spaces[number].id in spaces) == expected else f"{caller} lists {space}: not {expected}"
