"""Row 1 of the promises: no tenant sees another, by any address, with any method, as anybody, wherever an id stands."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from secrets import token_hex
from urllib.parse import unquote

import psycopg
import pytest
from django.http import HttpRequest, HttpResponse
from django.urls import URLResolver, path
from django.urls.resolvers import RegexPattern

from governance.actor import Actor
from governance.tenants.services import tenant_create
from governance.vocabulary import RoleName
from tests import factories
from tests.architecture.catalogue import tenant_tables
from tests.factories import World
from tests.governance.filled_tenants import Filled, fill
from tests.governance.tables import Rows, rows_of
from tests.governance.tenant_crossings import (
    METHODS,
    PLACES,
    WHO,
    Ask,
    Heard,
    Ids,
    RequestingTenant,
    asks,
    ids_of,
    ids_unknown,
    list_unknown_addresses,
    routes,
)
from tests.harness.evidence import Evidence

Superuser = Callable[[], psycopg.Connection]
REQUESTS, REQUESTS_IN_FULL = 7_600, 20_000


@dataclass
class Three:
    """acme asks; `second` is what must not be seen by anyone, `third` not by acme and nobody else's key."""

    asker: RequestingTenant
    second: Filled
    third: Filled
    ids: Ids
    unknown: Ids

    def leaks(self, ask: Ask, heard: Heard) -> bool:
        """Return whether a reply has a canary where it does not belong. The sent words may be repeated."""
        name, sent = self.second.canary, unquote(heard.sent)
        said = unquote(unquote(heard.body))  # an address to come back to, inside an address to go to
        for words in (f"the {name} sings", f"{name}-tag", f"speaker={name}", self.ids.path):
            said = said.replace(words, "") if words in sent else said
        foreign = [self.second.canary] + ([] if ask.who == "foreign key" else [self.third.canary])
        return any(canary in said for canary in foreign)

    def tells(self, ask: Ask) -> tuple[list[Heard], str]:
        """Ask with an id that never was and with a foreign one; once more if they differ, for a call changes things."""
        missing, foreign = self.asker.ask(ask, self.unknown), self.asker.ask(ask, self.ids)
        heard = [missing, foreign]
        # There is no cursor that never was; an organisation's name is public, for its people sign in below it.
        compared = ask.place != "cursor" and "<slug:slug>" not in ask.route
        told = [reply.comparable(self.unknown, self.ids) for reply in heard]
        if compared and told[0] != told[1]:
            heard.append(self.asker.ask(ask, self.unknown))
            told.append(heard[-1].comparable(self.unknown, self.ids))
        leak = any(self.leaks(ask, reply) for reply in heard)
        differs = compared and told[-1] != told[1] and told[0] != told[1]
        fault = "a canary" if leak else f"{told[1]} instead of {told[0]}" if differs else ""
        return heard, f"{ask}: {fault}" if fault else ""


@pytest.fixture
def three(world: World, superuser: Superuser) -> Three:
    """Three tenants with rows in every table; every text of the second and the third has a canary."""
    root, chance = superuser(), Random(1)
    _, member = tenant_create(slug="third", name="Third", owner_email="chloe@third.example")
    chloe = factories._person(member, RoleName.OWNER, "chloe@third.example")
    own, second, third = (
        fill(person, f"{word}{token_hex(6)}")
        for person, word in ((world.olivia, "own"), (world.charlie, "second"), (chloe, "third"))
    )
    # So that its sign-in server is refused as an address, and nobody goes out to look for it.
    root.execute("UPDATE governance_oidcprovider SET issuer = 'https://127.0.0.1/'")
    unknown = ids_unknown(chance)
    asker = RequestingTenant(world.olivia, ids_of(root, own, "acme"), chloe.key.text, unknown)
    return Three(asker, second, third, ids_of(root, second, "other"), unknown)


def everything_of(root: psycopg.Connection, actor: Actor) -> dict[str, Rows]:
    return {table: sorted(rows_of(root, actor, table)) for table in tenant_tables(root)}


def test_by_no_address_with_no_method_as_nobody(
    three: Three, superuser: Superuser, full_size: bool, evidence: Evidence
) -> None:
    root, wanted = superuser(), REQUESTS_IN_FULL if full_size else REQUESTS
    before = everything_of(root, three.second.person.actor)
    statuses, faults, tried = Counter[int](), list[str](), Counter[str]()
    for ask in asks(Random(2)):
        if statuses.total() >= wanted:
            break
        heard, fault = three.tells(ask)
        faults += [fault] if fault else []
        statuses.update(reply.status for reply in heard)
        tried.update({f"{ask.who}", f"in {ask.place}"})
    after = everything_of(root, three.second.person.actor)
    changed = sum(before[table] != after[table] for table in before)
    assert faults == []
    assert {table for table in before if before[table] != after[table]} == set()
    assert not [status for status in statuses if status >= 500 and status not in {501, 503}], statuses
    assert three.asker.browser.get("/you/").status_code == 200
    evidence(
        row=1,
        name="every-address",
        figures={
            "requests": statuses.total(),
            "addresses": len(set(routes())),
            "methods": len(METHODS),
            "canaries seen": 0,
            "foreign ids told from random ones": len(faults),
            "tables with a changed row": changed,
        }
        | {f"asks {name}": number for name, number in sorted(tried.items())}
        | {f"answered {status}": number for status, number in sorted(statuses.items())},
    )


def test_every_address_and_method_is_asked_even_in_the_smaller_run() -> None:
    first = asks(Random(2))[: REQUESTS // 3 + 700]
    assert {(ask.route, ask.method) for ask in first} == {(route, method) for route in routes() for method in METHODS}
    assert {ask.who for ask in first} == set(WHO)
    assert {ask.place for ask in first} == set(PLACES)


def test_an_address_that_is_not_listed_shows() -> None:
    assert list_unknown_addresses(list(routes())) == []

    def view(request: HttpRequest) -> HttpResponse:
        raise NotImplementedError

    more = URLResolver(RegexPattern(""), [path("things/<uuid:thing_id>/", view)])
    assert list_unknown_addresses(list(routes(more))) == ["things/<uuid:thing_id>/"]


def test_a_policy_that_fell_shows(three: Three, superuser: Superuser) -> None:
    """The mutant: the database's policies let everything through."""
    root = superuser()
    for table in tenant_tables(root) - {"governance_user", "governance_tenant"}:
        root.execute(f"ALTER POLICY tenant_only ON {table} USING (true) WITH CHECK (true)".encode())
    invitations = "api/v1/invitations/"
    assert three.tells(Ask("key", "GET", invitations, "path"))[1].endswith("a canary")
    assert three.tells(Ask("session", "GET", "settings/members/", "path"))[1].endswith("a canary")


def test_owner_of_the_ids_gets_content_and_changes_rows(three: Three, superuser: Superuser) -> None:
    """The mutant: a key that reaches the tenant whose ids are asked with."""
    root = superuser()
    reached = replace(three, ids=ids_of(root, three.third, "third"))
    before = everything_of(root, three.third.person.actor)
    for method in ("GET", "DELETE"):
        ask = Ask("foreign key", method, "api/v1/memories/<uuid:memory_id>/", "path")
        assert three.tells(ask)[1] == ""
        assert " instead of " in reached.tells(ask)[1]
    assert everything_of(root, three.third.person.actor) != before
