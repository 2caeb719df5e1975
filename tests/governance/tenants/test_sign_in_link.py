"""A sign-in link works once, for one, in time."""

import threading
from collections.abc import Callable

import psycopg
import pytest
from django.db import connections

from governance.actor import Actor
from governance.database import acting
from governance.errors import NotFound
from governance.models import AuditEntry, Member
from governance.tenants.services import sign_in_link_create, sign_in_link_use
from governance.vocabulary import Channel, PrincipalKind, RoleName, Verb
from tests.factories import World
from tests.governance.tables import read_all_rows
from tests.harness.databases import waiting_for_locks
from tests.harness.product import wait_until

Superuser = Callable[[], psycopg.Connection]


def _token(world: World) -> str:
    url = sign_in_link_create(actor=world.olivia.actor, member=world.alice.member).url
    assert url.startswith("http://testserver/sign-in/")
    return url.rsplit("/", 2)[1]


def _use(token: str) -> Actor:
    return sign_in_link_use(token=token, request_id="request-of-a-test", address="192.0.2.1")


def test_it_signs_the_member_in(world: World) -> None:
    actor = _use(_token(world))
    assert (actor.tenant_id, actor.member_id, actor.role) == (world.acme.id, world.alice.member.id, RoleName.EDITOR)
    assert (actor.principal_kind, actor.scopes) == (PrincipalKind.MEMBER, None)
    assert (actor.context.channel, actor.context.address) == (Channel.WEB, "192.0.2.1")


def test_it_works_once(world: World) -> None:
    token = _token(world)
    _use(token)
    with pytest.raises(NotFound):
        _use(token)
    assert _sign_ins(world) == 1


def test_of_two_at_once_one_is_signed_in(world: World, superuser: Superuser) -> None:
    """Both have found the link usable before either may mark it: a lock held outside makes them meet there."""
    token, signed_in, refused = _token(world), [], []

    def use() -> None:
        try:
            signed_in.append(_use(token))
        except NotFound as refusal:
            refused.append(refusal)
        finally:
            connections.close_all()

    holder, watcher = superuser(), superuser()
    threads = [threading.Thread(target=use) for _ in range(2)]
    with holder.transaction():
        holder.execute("SELECT 1 FROM governance_signinlink FOR UPDATE")
        for thread in threads:
            thread.start()
        wait_until(lambda: waiting_for_locks(watcher) == 2, seconds=10)
    for thread in threads:
        thread.join(timeout=30)
    assert (len(signed_in), len(refused)) == (1, 1)
    assert _sign_ins(world) == 1


def test_it_does_not_work_after_its_time(world: World, superuser: Superuser) -> None:
    token = _token(world)
    superuser().execute("UPDATE governance_signinlink SET expires_at = now()")
    with pytest.raises(NotFound):
        _use(token)


def test_it_does_not_work_for_a_member_who_was_removed(world: World) -> None:
    token = _token(world)
    with acting(world.olivia.actor):
        Member.objects.filter(id=world.alice.member.id).update(removed_at="2020-01-01T00:00:00Z")
    with pytest.raises(NotFound):
        _use(token)


def test_an_unknown_one_is_not_found_and_leaves_no_row(world: World, superuser: Superuser) -> None:
    before = read_all_rows(superuser())
    for token in ("", "unknown", "x" * 5000, "☃"):
        with pytest.raises(NotFound):
            _use(token)
    assert read_all_rows(superuser()) == before


def test_the_token_is_not_in_the_database(world: World, superuser: Superuser) -> None:
    token = _token(world)
    assert token not in str(read_all_rows(superuser()))


def _sign_ins(world: World) -> int:
    with acting(world.olivia.actor):
        return AuditEntry.objects.filter(verb=Verb.SIGN_IN_LINK_USED).count()
