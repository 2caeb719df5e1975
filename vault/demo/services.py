"""Creates a demo tenant with a month of memories of two people and a team."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter

from governance.actor import Actor
from governance.backdate import backdate
from governance.database import acting, database_now
from governance.errors import Conflict
from governance.models import Member
from governance.tenants.selectors import me_get, tenant_id_by_slug
from governance.tenants.services import command_line_actor, member_add, tenant_create
from governance.vocabulary import RoleName
from vault.demo.stage import LAST_STEPS, STEPS, Stage
from vault.demo.story import Entry, memories_read, parse_story_time, story_read
from vault.models import Cube

OWNER = "ines"


@dataclass(frozen=True)
class DemoTenant:
    """A demo tenant. new: it was filled by this call; people: (email, role) of the members, owner first."""

    slug: str
    name: str
    new: bool
    memories: int
    people: tuple[tuple[str, RoleName], ...]


def demo_create(*, slug: str) -> DemoTenant:
    """Fill the tenant `slug` with the demo, in one transaction. A tenant that has the demo already stays unchanged.

    The worker makes vectors, links and counts later. Raises Invalid; Conflict if another tenant has this slug;
    KeyUnavailable. Writes: Tenant, Member …, Cube …, and the rows of the steps of the story.
    """
    story = story_read()
    tenant_id = tenant_id_by_slug(slug)
    if tenant_id is None:
        tenant_id = tenant_create(slug=slug, name=story["name"], owner_email=story["people"][0]["email"])[0].id
    system = command_line_actor(tenant_id)
    with acting(system):
        if me_get(actor=system).tenant_name != story["name"]:
            raise Conflict(f"The tenant {slug} is not the demo. Choose another name with --tenant.")
        is_new = not Cube.objects.filter(tenant_id=tenant_id).exists()
        if is_new:
            _play_story(system, story)
        count = Cube.objects.stored().filter(tenant_id=tenant_id).count()
    return DemoTenant(slug, story["name"], is_new, count, _remaining_people(story))


def _remaining_people(story: Entry) -> tuple[tuple[str, RoleName], ...]:
    left = {step["who"] for step in story["departures"]}
    return tuple((person["email"], RoleName(person["role"])) for person in story["people"] if person["key"] not in left)


def _play_story(system: Actor, story: Entry) -> None:
    now = database_now()
    stage = Stage(tenant_id=system.tenant_id, today=now)
    for person in story["people"]:
        stage.members[person["key"]] = _make_member(system, person)
    for moment, kind, step in _dated_steps(story, now):
        perform, models = STEPS[kind]
        with backdate(moment):
            perform(stage, step)
        stage.date_rows(models, now, moment)
    for kind, last in LAST_STEPS.items():
        _perform_all(stage, last, story[kind])


def _make_member(system: Actor, person: Entry) -> Member:
    if person["key"] == OWNER:
        return Member.objects.get(tenant_id=system.tenant_id)  # made with the tenant
    return member_add(actor=system, email=person["email"], role=RoleName(person["role"]))


def _dated_steps(story: Entry, now: datetime) -> Iterator[tuple[datetime, str, Entry]]:
    """Yield (time, kind, step) of all steps, oldest first; of equal times in the order of STEPS."""
    given = story | {"memories": memories_read()}
    steps = [(parse_story_time(step["at"], now), kind, step) for kind in STEPS for step in given[kind]]
    yield from sorted(steps, key=itemgetter(0))


def _perform_all(stage: Stage, perform: Callable[[Stage, Entry], None], steps: list[Entry]) -> None:
    for step in steps:
        perform(stage, step)
