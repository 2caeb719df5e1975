"""Conditions of grants: the contexts in which a grant holds. Pure.

Each part of a condition is true, false or unknown. It is unknown if the call does not name the value (no purpose, no
session) or if this version does not know the part. An allowance holds if every part is true; a denial holds unless one
is false. So a missing or unknown value never gives access.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, time
from functools import cache
from ipaddress import ip_address, ip_network
from typing import Any

from governance.actor import CallContext
from governance.time_range import OUT_OF_RANGE, is_in_range
from governance.vocabulary import Channel, Effect

LISTS = ("purpose", "channel", "session_id", "address")
MOMENTS = ("not_before", "not_after")
FORMER_SESSION = "session"  # in conditions that 0.1.0 stored: `session_id`
KNOWN = (*LISTS, *MOMENTS, "daily")
MOST_VALUES = 50
LONGEST_VALUE = 200
Document = Mapping[str, Any]
"""{purpose: […], channel: […], session_id: […], address: [CIDR…], not_before, not_after, daily: {from, until}}; UTC."""


@dataclass(frozen=True)
class ConditionFault(Exception):
    """An error in a part of a condition."""

    part: str
    message: str


def holds(document: Document, effect: Effect, context: CallContext, now: datetime) -> bool:
    """Return whether a grant under this condition counts for a call. `now`: the database's time."""
    parts = [_judge_part(name, value, context, now) for name, value in document.items()]
    return all(part is True for part in parts) if effect is Effect.ALLOW else all(part is not False for part in parts)


def check_conditions(document: Document) -> dict[str, Any]:
    """Return the condition in its stored form, with sorted lists. Raises ConditionFault for an unknown part."""
    for name in document:
        if name not in KNOWN:
            raise ConditionFault(str(name), f"unknown condition; known are {', '.join(KNOWN)}")
    return {name: _CHECKS[name](name, value) for name, value in sorted(document.items())}


def rename_parts(document: Document) -> dict[str, Any]:
    """Return a stored condition with the present names of its parts."""
    return {"session_id" if name == FORMER_SESSION else name: value for name, value in document.items()}


def narrows(inner: Document, outer: Document) -> bool:
    """Return whether `inner` holds only in contexts in which `outer` holds, judged by comparing their parts."""
    inner = rename_parts(inner)
    return all(name in inner and _is_subset(inner[name], value) for name, value in rename_parts(outer).items())


def _is_subset(inner: Any, outer: Any) -> bool:
    if isinstance(inner, list) and isinstance(outer, list):
        return set(inner) <= set(outer)
    return bool(inner == outer)


def _judge_part(name: str, value: Any, context: CallContext, now: datetime) -> bool | None:
    judge = _JUDGES.get(name)
    try:
        return judge(value, context, now) if judge else None
    except (TypeError, ValueError, KeyError, AttributeError):
        return None  # stored by another version: not understood


def _is_in_list(stated: str, values: Any) -> bool | None:
    return stated in _texts(values) if stated else None


def _texts(values: Any) -> list[str]:
    if not isinstance(values, list):
        raise TypeError
    return values


def _address(values: Any, context: CallContext, now: datetime) -> bool | None:
    if not context.address:
        return None
    address = ip_address(context.address)
    return any(address in _network(network) for network in _texts(values))


def _daily(value: Any, context: CallContext, now: datetime) -> bool:
    """Return whether the time of day lies between two times; an interval may cross midnight."""
    start, end, at = time.fromisoformat(value["from"]), time.fromisoformat(value["until"]), now.time()
    return start <= at < end if start <= end else at >= start or at < end


Judge = Callable[[Any, CallContext, datetime], bool | None]
_JUDGES: dict[str, Judge] = {
    "purpose": lambda value, context, now: _is_in_list(context.purpose, value),
    "channel": lambda value, context, now: _is_in_list(context.channel, value),
    "session_id": lambda value, context, now: _is_in_list(context.session, value),
    FORMER_SESSION: lambda value, context, now: _is_in_list(context.session, value),
    "address": _address,
    "not_before": lambda value, context, now: now >= datetime.fromisoformat(value),
    "not_after": lambda value, context, now: now < datetime.fromisoformat(value),
    "daily": _daily,
}
_network = cache(ip_network)


def _check_list(name: str, value: Any) -> list[str]:
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_VALUES:
        raise ConditionFault(name, f"a list of 1 to {MOST_VALUES} texts")
    for text in value:
        if not isinstance(text, str) or not 1 <= len(text) <= LONGEST_VALUE or not text.isprintable():
            raise ConditionFault(name, f"texts of 1 to {LONGEST_VALUE} printable characters")
    return sorted(set(value))


def _check_channels(name: str, value: Any) -> list[str]:
    return _read_all(name, _check_list(name, value), lambda text: str(Channel(text)), f"some of {', '.join(Channel)}")


def _check_addresses(name: str, value: Any) -> list[str]:
    return _read_all(name, _check_list(name, value), lambda text: str(ip_network(text)), "networks such as 10.0.0.0/8")


def _read_all(name: str, values: Iterable[str], read: Callable[[str], str], wanted: str) -> list[str]:
    try:
        return sorted({read(text) for text in values})
    except ValueError as error:
        raise ConditionFault(name, wanted) from error


def _check_moment(name: str, value: Any) -> str:
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError) as error:
        raise ConditionFault(name, "an RFC 3339 time") from error
    if moment.tzinfo is None:
        raise ConditionFault(name, "an RFC 3339 time with an offset")
    if not is_in_range(moment):
        raise ConditionFault(name, OUT_OF_RANGE)
    return moment.isoformat()


def _check_daily(name: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or set(value) != {"from", "until"}:
        raise ConditionFault(name, 'two times of the day in UTC, as in {"from": "08:00", "until": "18:00"}')
    try:
        times = {key: time.fromisoformat(value[key]) for key in ("from", "until")}
    except (TypeError, ValueError) as error:
        raise ConditionFault(name, "times such as 08:00") from error
    if any(time.tzinfo is not None for time in times.values()) or times["from"] == times["until"]:
        raise ConditionFault(name, "two different times of the day, without an offset: they are UTC")
    return {key: time.isoformat() for key, time in times.items()}


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "purpose": _check_list,
    "channel": _check_channels,
    "session_id": _check_list,
    "address": _check_addresses,
    "not_before": _check_moment,
    "not_after": _check_moment,
    "daily": _check_daily,
}
