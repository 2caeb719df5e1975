"""Kinds of jobs, and what their handlers take and return."""

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
    """The arguments of a handler for one step. actor: who asked, with current rights. system: the product itself.

    settings: ids, numbers and filters that were asked for. state: what the step before left, {} at first. request: the
    sealed content that was asked for, opened; None once it was erased. result: what earlier steps added up.
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
    """The result of a step. state: the start of the next step, None if the job is done; done, total: in units of the
    kind, None leaves them unchanged; result: sealed, for readers of the job.

    parked: the code of each object that could not be changed in any attempt. The job then fails and waits as a dead
    letter; run again, it begins with `state`.
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

    counts: of objects by what is done to them, where a kind does different things.
    """

    count: int
    ids: tuple[UUID, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class JobKind:
    """A kind of job. permission: to ask for it, to run it again, to undo it.

    settings: a dataclass that checks the settings of a schedule; None: it cannot be scheduled. default_cron: when a new
    tenant's schedule runs it, in UTC; empty: it has none. undo: the kind that undoes it, within `undo_for`. cancelled:
    writes what follows a cancellation, with its transaction. most_open: jobs of this kind that one member, key or
    persona may have open at once.
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


_kinds: dict[str, JobKind] = {}


def add_kind(kind: JobKind) -> None:
    _kinds[kind.name] = kind


def remove_kind(name: str) -> None:
    _kinds.pop(name, None)


def kind_of(name: str) -> JobKind:
    """Return the kind of a job by its name. Raises LookupError."""
    return _kinds[name]


def schedulable_kinds() -> list[str]:
    return sorted(kind.name for kind in _kinds.values() if kind.settings is not None)


def default_kinds() -> list[JobKind]:
    """Return the kinds for which a new tenant gets a schedule, by name."""
    return sorted((kind for kind in _kinds.values() if kind.default_cron), key=lambda kind: kind.name)
