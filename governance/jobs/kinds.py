"""Kinds of jobs, and the arguments and results of their handlers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from governance.actor import Actor
from governance.models import Job
from governance.vocabulary import Permission


class JobCancelled(Exception):
    """The job was cancelled. The handler stops, and its current step writes nothing."""


@dataclass(frozen=True)
class JobRun:
    """The arguments of a handler for one step. actor: the requester, with current rights. system: the product itself.

    settings: the requested ids, numbers and filters. state: the state that the step before returned, {} at first.
    request: the decrypted content of the request; None once it was erased. result: the combined results of earlier
    steps.
    """

    job_id: UUID
    actor: Actor
    system: Actor
    settings: Mapping[str, Any]
    state: Mapping[str, Any]
    done: int
    total: int | None
    request: bytes | None = field(repr=False)
    result: Mapping[str, Any] = field(repr=False)
    report: Callable[[int, int | None], None] = field(repr=False)
    """report(done, total): progress within a long step. Raises JobCancelled; LeaseLost."""


@dataclass(frozen=True)
class Step:
    """The result of a step. state: the state for the next step, None if the job is done; done, total: in units of the
    kind, None leaves them unchanged; result: stored sealed, for readers of the job.

    parked: the error code of each object for which every attempt failed. The job then fails and becomes a dead letter;
    a retry begins with `state`.
    """

    state: Mapping[str, Any] | None = None
    done: int | None = None
    total: int | None = None
    result: Mapping[str, Any] | None = None
    parked: Mapping[UUID, str] = field(default_factory=dict)


JobHandler = Callable[[JobRun], "Step | Callable[[], Step]"]
"""Does the slow and outside work of a step; returns its outcome, or a function that writes and then returns it.

That function runs in the transaction that records the step. A DomainError fails the job, all but Unavailable; any other
exception is tried again after a pause.
"""


@dataclass(frozen=True)
class Preview:
    """The effect of a run: the number of objects, and some of their ids.

    counts: the number of objects by action, for kinds with several actions.
    """

    count: int
    ids: tuple[UUID, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)


Choices = Callable[[Actor], Mapping[str, Mapping[str, str]]]
"""Returns the names of the values that a schedule of an actor may have, by value, for each such setting."""


@dataclass(frozen=True)
class JobKind:
    """A kind of job. permission: needed to request, retry and undo it.

    settings: a dataclass that checks the settings of a schedule; None: it cannot be scheduled. default_cron: the times
    of a new tenant's schedule, in UTC; empty: it gets none. undo: the kind of job that undoes it, within `undo_for`.
    cancelled: writes the effects of a cancellation, in its transaction. most_open: the open jobs of this kind that one
    member, key or persona may have at once. choices: the values among which an actor chooses a setting.
    """

    name: str
    handler: JobHandler
    permission: Permission
    settings: type | None = None
    preview: Callable[[Actor, Mapping[str, Any]], Preview] | None = None
    undo: str | None = None
    undo_for: timedelta = timedelta(0)
    cancelled: Callable[[Actor, Job], None] | None = None
    default_cron: str = ""
    most_open: int = 20
    choices: Choices | None = None


_kinds: dict[str, JobKind] = {}


def add_kind(kind: JobKind) -> None:
    _kinds[kind.name] = kind


def remove_kind(name: str) -> None:
    _kinds.pop(name, None)


def find_kind(name: str) -> JobKind | None:
    """Return a kind of job; None for one of another release."""
    try:
        return kind_of(name)
    except LookupError:
        return None


def kind_of(name: str) -> JobKind:
    """Return the kind of job with this name. Raises LookupError."""
    return _kinds[name]


def schedulable_kinds() -> list[str]:
    return sorted(kind.name for kind in _kinds.values() if kind.settings is not None)


def default_kinds() -> list[JobKind]:
    """Return the kinds for which a new tenant gets a schedule, by name."""
    return sorted((kind for kind in _kinds.values() if kind.default_cron), key=lambda kind: kind.name)
