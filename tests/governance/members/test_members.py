"""Members and invitations, by service and by the API."""

import threading
from collections.abc import Callable

import psycopg
import pytest
from django.core import mail
from django.db import connections
from django.test import override_settings

from governance.actor import Actor
from governance.database import acting
from governance.errors import Conflict, Forbidden, Invalid, NotFound
from governance.members.selectors import invitation_get, invitations_list, member_get, members_list
from governance.members.services import (
    invitation_accept,
    invitation_create,
    invitation_revoke,
    member_remove,
    member_role_change,
)
from governance.models import ApiKey, Member, User
from governance.pages import First
from governance.tenants.services import member_add, sign_in_link_create
from governance.vocabulary import RoleName, Scope
from tests.factories import REQUEST_ID, World, client_for, key_for, person_add
from tests.governance.access.grants.test_grants import _but_denials
from tests.governance.accounts.people import (
    ADDRESS,
    PASSWORD,
    browser,
    find_entries,
    find_mailed_link,
    is_in,
    sign_in,
    token_of,
)
from tests.governance.filled_tenants import drain
from tests.governance.tables import read_all_rows
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import MISSING, Contract, without_id

Superuser = Callable[[], psycopg.Connection]
Call = Callable[[World, Actor], object]
EVERYBODY: dict[str, Call] = {
    "members_list": lambda world, actor: members_list(actor=actor, pages=First(1000)),
    "invitations_list": lambda world, actor: invitations_list(actor=actor, pages=First(1000)),
    "invitation_create": lambda world, actor: invitation_create(
        actor=actor, email="new@acme.example", role=RoleName.VIEWER
    ),
}
ON_BOB: dict[str, Call] = {
    "member_get": lambda world, actor: member_get(actor=actor, member_id=world.bob.member.id),
    "member_role_change": lambda world, actor: member_role_change(
        actor=actor, member_id=world.bob.member.id, role=RoleName.EDITOR
    ),
    "member_remove": lambda world, actor: member_remove(actor=actor, member_id=world.bob.member.id),
}


@pytest.mark.parametrize("who", ["alice", "bob", "ada"])
def test_it_refuses_those_who_do_not_govern_and_leaves_no_row(world: World, superuser: Superuser, who: str) -> None:
    before = read_all_rows(superuser())
    for name, call in {**EVERYBODY, **ON_BOB}.items():
        with pytest.raises(Forbidden):
            call(world, world.person(who).actor)
        assert read_all_rows(superuser()) == before, name


def test_another_tenants_member_is_not_found(world: World, superuser: Superuser) -> None:
    before = read_all_rows(superuser())
    for call in ON_BOB.values():
        with pytest.raises(NotFound):
            call(world, world.charlie.actor)
    assert read_all_rows(superuser()) == before


def test_an_owner_may_and_each_change_is_in_the_audit_log(world: World, superuser: Superuser) -> None:
    for call in {**EVERYBODY, **ON_BOB}.values():
        call(world, world.olivia.actor)
    assert find_entries(superuser, "member.role_changed") == [{"before": "viewer", "role": "editor"}]
    assert find_entries(superuser, "member.removed") == [{"role": "editor", "keys_revoked": 1}]
    assert find_entries(superuser, "invitation.created") == [{"role": "viewer"}]


def test_only_owners_make_change_and_stand_in_for_owners(world: World, superuser: Superuser) -> None:
    admin = person_add(world.acme, "adam@acme.example", RoleName.ADMIN)
    calls: list[Call] = [
        lambda w, actor: member_role_change(actor=actor, member_id=w.bob.member.id, role=RoleName.OWNER),
        lambda w, actor: member_role_change(actor=actor, member_id=w.olivia.member.id, role=RoleName.VIEWER),
        lambda w, actor: member_remove(actor=actor, member_id=w.olivia.member.id),
        lambda w, actor: invitation_create(actor=actor, email="x@acme.example", role=RoleName.OWNER),
        lambda w, actor: member_add(actor=actor, email="x@acme.example", role=RoleName.OWNER),
        lambda w, actor: sign_in_link_create(actor=actor, member=w.olivia.member),
    ]
    before = read_all_rows(superuser())
    for call in calls:
        with pytest.raises(Forbidden) as refusal:
            call(world, admin.actor)
        assert refusal.value.rule == "owners"
    assert read_all_rows(superuser()) == before


def test_the_last_owner_stays(world: World, superuser: Superuser) -> None:
    before = read_all_rows(superuser())
    for role in (RoleName.ADMIN, RoleName.VIEWER):
        with pytest.raises(Conflict):
            member_role_change(actor=world.olivia.actor, member_id=world.olivia.member.id, role=role)
    with pytest.raises(Conflict):
        member_remove(actor=world.olivia.actor, member_id=world.olivia.member.id)
    assert read_all_rows(superuser()) == before
    member_role_change(actor=world.olivia.actor, member_id=world.alice.member.id, role=RoleName.OWNER)
    member_remove(actor=world.olivia.actor, member_id=world.olivia.member.id)


def test_of_two_owners_who_remove_each_other_at_once_one_stays(world: World) -> None:
    for _ in range(3):
        second = person_add(world.acme, f"second{_}@acme.example", RoleName.OWNER)
        threads = [
            threading.Thread(target=_remove, args=(actor, member))
            for actor, member in ((world.olivia.actor, second.member), (second.actor, world.olivia.member))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=30)
        with acting(world.olivia.actor):
            assert Member.objects.filter(role__name=RoleName.OWNER, removed_at=None).count() == 1
            Member.objects.filter(id=world.olivia.member.id).update(removed_at=None)
            Member.objects.filter(id=second.member.id).update(removed_at="2020-01-01T00:00:00Z")


def _remove(actor: Actor, member: Member) -> None:
    try:
        member_remove(actor=actor, member_id=member.id)
    except (Conflict, NotFound):
        return
    finally:
        connections.close_all()


def test_who_comes_back_has_none_of_the_keys_of_before(world: World) -> None:
    member_remove(actor=world.olivia.actor, member_id=world.alice.member.id)
    back = member_add(actor=world.olivia.actor, email=world.alice.email, role=RoleName.VIEWER)
    assert back.id == world.alice.member.id
    assert client_for(world.alice.key.text).get("me/").status == 401
    with acting(world.olivia.actor):
        assert ApiKey.objects.filter(member=back, revoked_at=None).count() == 0
        assert Member.objects.select_related("role").get(id=back.id).role.name == "viewer"


def test_an_invitation_makes_an_account_a_member_and_a_password(world: World, superuser: Superuser) -> None:
    invitation_create(actor=world.olivia.actor, email="vera@acme.example", role=RoleName.EDITOR)
    drain()
    link, client = find_mailed_link(), browser()
    for _ in range(2):  # looking does not spend it
        page = client.get(link).content.decode()
        assert "Acme" in page
        assert "vera@acme.example" in page
    assert client.post(link, {"new": "short"}).status_code == 422
    assert client.post(link, {"new": PASSWORD})["Location"] == "/overview/"
    assert is_in(client)
    assert is_in(sign_in("vera@acme.example"))
    assert browser().post(link, {"new": PASSWORD}).status_code == 404
    assert len(find_entries(superuser, "invitation.accepted")) == 1


def test_it_is_mailed_and_the_mailed_link_proves_the_address(world: World) -> None:
    invitation_create(actor=world.olivia.actor, email="vera@acme.example", role=RoleName.EDITOR)
    drain()
    assert mail.outbox[-1].to == ["vera@acme.example"]
    assert "Acme" in mail.outbox[-1].subject
    assert browser().post(find_mailed_link(), {"new": PASSWORD}).status_code == 303
    assert _password_tenant(world) is None


def _password_tenant(world: World) -> object:
    with acting(world.olivia.actor):
        return User.objects.get(email="vera@acme.example").password_tenant


def test_who_has_a_password_keeps_it(world: World) -> None:
    invitation_create(actor=world.olivia.actor, email="charlie@other.example", role=RoleName.VIEWER)
    drain()
    link = find_mailed_link()
    client = signed_in(world.charlie)
    client.post("/account/password/", {"new": PASSWORD})
    joining = browser()
    assert 'name="new"' not in joining.get(link).content.decode()
    joining.post(link, {"new": "a foreign password here"})
    with acting(world.olivia.actor):
        joined = Member.objects.get(user__email="charlie@other.example")
    joining.post("/sign-in/~/organisation/", {"organisation": joined.id})
    assert joining.get("/api/v1/me/").json()["tenant"]["slug"] == "acme"
    assert not is_in(sign_in("charlie@other.example", "a foreign password here"))


def test_revoked_expired_and_made_up_links_are_the_same_404(world: World, superuser: Superuser) -> None:
    revoked, expired = (
        invitation_create(actor=world.olivia.actor, email=f"{n}@acme.example", role=RoleName.VIEWER) for n in "ab"
    )
    invitation_revoke(actor=world.olivia.actor, invitation_id=revoked.view.id)
    superuser().execute("UPDATE governance_invitation SET expires_at = now() WHERE id = %s", [expired.view.id])
    before = read_all_rows(superuser())
    for token in (token_of(revoked.url), token_of(expired.url), "made-up"):
        assert browser().get(f"/invitation/{token}/").status_code == 404
        with pytest.raises(NotFound):
            invitation_accept(token=token, request_id=REQUEST_ID, address=ADDRESS)
    assert read_all_rows(superuser()) == before


def test_of_two_who_accept_at_once_one_joins(world: World) -> None:
    invitation_create(actor=world.olivia.actor, email="vera@acme.example", role=RoleName.VIEWER)
    drain()
    joined: list[Actor] = []
    threads = [threading.Thread(target=_accept, args=(token_of(find_mailed_link()), joined)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert len(joined) == 1


def _accept(token: str, joined: list[Actor]) -> None:
    try:
        joined.append(invitation_accept(token=token, request_id=REQUEST_ID, address=ADDRESS))
    except (NotFound, Conflict):
        return
    finally:
        connections.close_all()


def test_neither_token_is_in_a_table(world: World, superuser: Superuser) -> None:
    made = invitation_create(actor=world.olivia.actor, email="vera@acme.example", role=RoleName.VIEWER)
    drain()
    found = str(read_all_rows(superuser()))
    assert token_of(made.url) not in found
    assert token_of(find_mailed_link()) not in found
    assert made.url not in repr(made)


def test_what_is_no_address_and_who_is_a_member_cannot_be_invited(world: World) -> None:
    with pytest.raises(Invalid):
        invitation_create(actor=world.olivia.actor, email="nobody", role=RoleName.VIEWER)
    with pytest.raises(Conflict):
        invitation_create(actor=world.olivia.actor, email="ALICE@acme.example", role=RoleName.VIEWER)


def test_the_api_lists_invites_changes_and_removes(world: World) -> None:
    client = Contract(key=world.olivia.key.text)
    listed = client.get("members/").json
    assert [member["email"] for member in listed["results"]] == [
        "olivia@acme.example",
        "alice@acme.example",
        "bob@acme.example",
        "ada@acme.example",
    ]
    assert client.get("members/?page_size=2").json["next"]
    body = {"email": "vera@acme.example", "role": "editor"}
    assert (client.post("members/", body).status, client.get("members/invitations/").status) == (405, 404)
    made = client.post("invitations/", body, idempotency_key="once")
    assert made.status == 201
    assert made.json["link"].startswith("http://testserver/invitation/")
    assert client.post("invitations/", body, idempotency_key="once").json == made.json
    assert client.get("invitations/").json["count"] == 1
    assert client.get(f"invitations/{made.json['id']}/").json["email"] == "vera@acme.example"
    assert client.delete(f"invitations/{made.json['id']}/").status == 204
    assert client.get(f"invitations/{made.json['id']}/").status == 404
    bob = f"members/{world.bob.member.id}/"
    assert client.patch(bob, {"role": "editor"}).json["role"] == "editor"
    assert client.get(bob).json["role"] == "editor"
    assert client.delete(bob + "?dry_run=true").json == {
        "dry_run": True,
        "count": 1,
        "ids": [str(world.bob.member.id)],
    }
    assert client.get(bob).status == 200
    assert client.delete(bob).status == 204
    assert client.get(bob).status == 404
    assert client.delete(f"members/{world.olivia.member.id}/").status == 409


def test_the_api_answers_bad_input_by_name(world: World) -> None:
    client = Contract(key=world.olivia.key.text)
    for body in ({}, {"email": "x@acme.example"}, {"email": "x", "role": "viewer"}, {"role": "king", "email": "a@b.c"}):
        assert client.post("invitations/", body).status == 400
    assert client.post("invitations/", {"email": "x@a.example", "role": "viewer", "name": "x"}).status == 400
    king = client.patch(f"members/{world.bob.member.id}/", {"role": "king"})
    assert king.status == 400
    assert king.json["errors"][0]["message"].startswith("one of owner, admin, editor"), "the choices are named"
    assert client.get("members/?rolle=x").status == 400


def test_a_foreign_member_or_invitation_is_like_one_that_never_was(world: World) -> None:
    made = invitation_create(actor=world.olivia.actor, email="vera@acme.example", role=RoleName.VIEWER)
    charlie = Contract(key=world.charlie.key.text)
    for foreign, prefix in ((world.bob.member.id, "members/"), (made.view.id, "invitations/")):
        for method, body in (("GET", None), ("PATCH", {"role": "viewer"}), ("DELETE", None)):
            reply, missing = (charlie.send(method, f"{prefix}{id}/", body) for id in (foreign, MISSING))
            assert without_id(reply) == without_id(missing)
    assert invitation_get(actor=world.olivia.actor, invitation_id=made.view.id)


def test_at_home_it_is_403_and_the_denial_is_recorded(world: World, superuser: Superuser) -> None:
    alice = Contract(key=world.alice.key.text)
    assert alice.get("members/").status == 403
    assert alice.post("invitations/", {"email": "x@acme.example", "role": "viewer"}).status == 403
    assert alice.delete(f"members/{world.bob.member.id}/").status == 403
    assert len(find_entries(superuser, "access.denied", world.alice.member.id)) == 3


@pytest.mark.parametrize("missing", [Scope.MEMORIES_READ, Scope.MEMORIES_WRITE, Scope.CHAT, None])
def test_a_key_with_fewer_scopes_than_all_makes_nobody_more(
    world: World, superuser: Superuser, missing: Scope | None
) -> None:
    scopes = set(Scope) - {missing} if missing else {Scope.ADMIN}
    client = Contract(key=key_for(world.olivia, *scopes).text)
    before = _but_denials(read_all_rows(superuser()))
    for role in ("admin", "viewer"):
        invited = client.post("invitations/", {"email": "vera@acme.example", "role": role})
        raised = client.patch(f"members/{world.bob.member.id}/", {"role": role})
        assert (invited.status, raised.status) == (403, 403)
        assert "every scope" in invited.json["detail"]
    assert _but_denials(read_all_rows(superuser())) == before
    assert [detail["rule"] for detail in find_entries(superuser, "access.denied")] == ["scopes"] * 4
    drain()
    assert mail.outbox == []


def test_a_key_with_fewer_scopes_still_lists_and_removes(world: World) -> None:
    client = Contract(key=key_for(world.olivia, Scope.ADMIN).text)
    assert client.get("members/").json["count"] == 4
    assert client.delete(f"members/{world.bob.member.id}/").status == 204


def test_the_page_works_without_scripts(world: World) -> None:
    client = signed_in(world.olivia)
    assert "alice@acme.example" in client.get("/settings/members/").content.decode()
    invited = client.post("/settings/members/", {"email": "vera@acme.example", "role": "viewer"}).content.decode()
    assert "on its way to vera@acme.example" in invited
    assert "/invitation/" not in invited
    with override_settings(EMAIL_HOST=""):
        invited = client.post("/settings/members/", {"email": "vera@acme.example", "role": "viewer"}).content.decode()
    assert "Hand this link to vera@acme.example" in invited
    assert 'data-copy="made-link"' in invited
    assert "/invitation/" in invited.partition('id="made-link">')[2].partition("<")[0]
    assert client.post("/settings/members/", {"email": "no", "role": "viewer"}).status_code == 422
    role = f"/settings/members/{world.bob.member.id}/role/"
    assert client.post(role, {"role": "editor"})["Location"] == "/settings/members/"
    refused = client.post(role, {"role": "king"})
    assert (refused.status_code, f'id="{world.bob.member.id}_role_error"' in refused.content.decode()) == (422, True)
    link = client.post(f"/settings/members/{world.bob.member.id}/link/").content.decode()
    assert "/sign-in/" in link
    remove = f"/settings/members/{world.bob.member.id}/remove/"
    assert "bob@acme.example" in client.get(remove).content.decode()
    assert client.post(remove).status_code == 303
    assert signed_in(world.alice).get("/settings/members/").status_code == 403
