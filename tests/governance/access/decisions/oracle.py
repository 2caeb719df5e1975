"""Second implementation of the rules: plain data, one function, no code of the product."""

from dataclasses import dataclass, field
from typing import Any

NOON = 12  # the time of day of every call in a world, UTC
READ, WRITE, SHARE, GOVERN = "read", "write", "share", "govern"
NEEDS = {READ: {READ}, WRITE: {READ, WRITE}, SHARE: {READ, SHARE}, GOVERN: {READ, WRITE, SHARE, GOVERN}}
ROLES = {
    "owner": {READ, WRITE, SHARE, GOVERN},
    "admin": {READ, WRITE, SHARE, GOVERN},
    "editor": {READ, WRITE, SHARE, GOVERN},
    "viewer": {READ},
    "auditor": set(),
}
SCOPES = {"memories:read": {READ}, "memories:write": {WRITE}, "chat": set(), "admin": {SHARE, GOVERN}}


@dataclass
class Space:
    kind: str
    owner: int | None
    read_only: bool
    path: str


@dataclass
class Memory:
    space: int
    owner: int | None
    level: str
    persona: int | None
    gone: bool  # deleted or expired


@dataclass
class Grant:
    holder: tuple[str, object]
    about: tuple[str, int]  # "space" or "memory", and which
    action: str
    effect: str
    ended: bool
    conditions: dict[str, Any]


@dataclass
class Caller:
    """member: who it is or acts for. key, scopes, bound_*: of an API key; None for a browser."""

    member: int
    role: str
    key: int | None = None
    scopes: set[str] | None = None
    bound_persona: int | None = None
    bound_paths: tuple[str, ...] = ()
    persona: int | None = None
    says: dict[str, str] = field(default_factory=dict)  # purpose, channel, session_id, address


@dataclass
class Facts:
    spaces: list[Space]
    memories: list[Memory]
    grants: list[Grant]


def may(world: Facts, who: Caller, action: str, memory: int | None, space: int) -> bool:
    place, thing = world.spaces[space], None if memory is None else world.memories[memory]
    if (thing and thing.gone) or (who.scopes is not None and not any(action in SCOPES[scope] for scope in who.scopes)):
        return False
    if who.bound_paths or who.bound_persona is not None:
        inside = not who.bound_paths or any(f"{place.path}/".startswith(f"{root}/") for root in who.bound_paths)
        foreign = thing and who.bound_persona not in {None, thing.persona}
        if action in {SHARE, GOVERN} or not inside or foreign:
            return False
    mine = {("member", who.member), ("role", who.role), ("key", who.key), ("persona", who.persona)}
    about = {("memory", memory), ("space", space)}
    here = [g for g in world.grants if g.holder in mine and g.about in about and not g.ended and applies(g, who)]
    if any(g.effect == "deny" and g.action in NEEDS[action] for g in here) or (action == WRITE and place.read_only):
        return False
    closed = thing and thing.level == "private" and (thing.owner is None or thing.owner != place.owner)
    given = [g for g in here if g.effect == "allow" and (g.about[0] == "memory" or not closed)]
    return by_role(who, action, thing, place) or any(action in NEEDS[g.action] for g in given)


def by_role(who: Caller, action: str, thing: Memory | None, place: Space) -> bool:
    if action not in ROLES[who.role] or who.role in {"owner", "admin"}:
        return action in ROLES[who.role]
    owns_place, owns_thing = place.owner == who.member, thing is not None and thing.owner == who.member
    if (place.kind == "private" and not owns_place) or (thing and thing.level == "private" and not owns_thing):
        return False
    if action in {SHARE, GOVERN}:
        return owns_place or owns_thing
    kept = (place.kind == "expert" and not owns_place) or (thing and thing.level == "read_only" and not owns_thing)
    return action == READ or not kept


def applies(grant: Grant, who: Caller) -> bool:
    for name, value in grant.conditions.items():
        said, met = who.says.get(name, ""), grant.effect == "deny"  # what is not said, or not known, opens nothing
        if name == "hours":
            start, end = value
            met = start <= NOON < end if start < end else not end <= NOON < start
        elif said and name in {"purpose", "channel", "session_id", "address"}:
            met = said.startswith("10.") if name == "address" else said in value
        if not met:
            return False
    return True
