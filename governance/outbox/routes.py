"""The registry of topics: the handler, queue and time limit of each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar
from uuid import UUID

from governance.actor import Actor
from governance.vocabulary import Weight

BATCH = 200  # events of one task
TIME_LIMIT = timedelta(minutes=5)
MAX_ATTEMPTS = 12

Payload = Mapping[str, object]
Write = Callable[[], object]
"""The writes of a task. They run in the transaction that ends its events; AGAIN lets the events come again at once."""
AGAIN = object()
EventHandler = Callable[[Actor, Sequence[Payload]], Write]
"""Does the slow and outside work of some events of a tenant, and returns what to write."""
F = TypeVar("F", bound=EventHandler)


@dataclass(frozen=True)
class Task:
    """Events of one tenant and topic under one lease. attempt: the highest number of attempts among the events."""

    tenant_id: UUID
    topic: str
    lease: UUID
    event_ids: tuple[UUID, ...]
    attempt: int = 0


TaskHandler = Callable[[Task, Actor, Sequence[Payload]], Write]
DeadLetter = Callable[[Actor, Sequence[UUID], str], None]
"""Tells that events with these ids became dead letters, with the reason; in the transaction that parks them."""


@dataclass(frozen=True)
class Route:
    """The handler of a topic. batch: the most events in one task; is_serial: the events of a task run one by one, and
    each fails by itself; limit: the time after which a run has failed; resumed: called with the ids of retried dead
    letters.
    """

    topic: str
    handler: TaskHandler
    weight: Weight
    batch: int = BATCH
    is_serial: bool = False
    limit: timedelta = TIME_LIMIT
    max_attempts: int = MAX_ATTEMPTS
    dead_letter: DeadLetter | None = None
    resumed: Callable[[Sequence[UUID]], None] | None = None


_routes: dict[str, Route] = {}


def event_handler(
    topic: str, *, weight: Weight = Weight.BACKGROUND, limit: timedelta = TIME_LIMIT, batch: int = BATCH
) -> Callable[[F], F]:
    """Register a function for the light events of a topic: up to `batch` in one task, not listed as jobs."""

    def register(handler: F) -> F:
        def run(task: Task, actor: Actor, payloads: Sequence[Payload]) -> Write:
            return handler(actor, payloads)

        add_route(Route(topic=topic, handler=run, weight=weight, limit=limit, batch=batch))
        return handler

    return register


def add_route(route: Route) -> None:
    """Add the route of a topic. Raises ValueError if the topic has another handler."""
    if route.topic in _routes:
        raise ValueError(f"The topic {route.topic} has two handlers.")
    _routes[route.topic] = route


def remove_route(topic: str) -> None:
    _routes.pop(topic, None)


def route_of(topic: str) -> Route:
    """Return the route of a topic. Raises LookupError."""
    return _routes[topic]


def find_weight(topic: str) -> Weight | None:
    """Return the queue of a topic; None for a topic without a handler."""
    route = _routes.get(topic)
    return route.weight if route else None


def all_routes() -> tuple[Route, ...]:
    return tuple(_routes.values())


def routes_of(weight: Weight) -> list[Route]:
    return [route for route in _routes.values() if route.weight is weight]
