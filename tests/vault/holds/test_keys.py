"""A key is needed while anything that is sealed under it is held: whatever will destroy keys asks here."""

import pytest

from governance.errors import Forbidden
from governance.keys.services import GENERAL, member_scope, subject_scope
from governance.keys.tables import TOKENS
from governance.privacy.services import subject_ensure
from tests.factories import World
from vault.content.drafts import CubeDraft
from vault.cubes.services import cubes_add
from vault.holds.selectors import is_key_needed
from vault.holds.services import HoldDraft, cube_freeze, cube_unfreeze, hold_create


def test_the_key_of_what_is_held_is_needed_and_no_other(world: World) -> None:
    alice, olivia = world.alice.actor, world.olivia.actor
    draft = CubeDraft(content="About Carla.", namespace="/team", subject="carla")
    cube = cubes_add(actor=alice, drafts=[draft])[0].cube
    cubes_add(actor=alice, drafts=[CubeDraft(content="Alice's.", persona="alice"), CubeDraft(content="Plain.")])
    assert cube.subject_id is not None
    scopes = [subject_scope(cube.subject_id), member_scope(world.alice.member.id), TOKENS]
    assert [is_key_needed(actor=olivia, scope=scope) for scope in scopes] == [False, False, False]
    cube_freeze(actor=alice, cube_id=cube.id, reason="Mine.")
    assert [is_key_needed(actor=olivia, scope=scope) for scope in scopes] == [True, False, True]
    cube_unfreeze(actor=alice, cube_id=cube.id)
    assert [is_key_needed(actor=olivia, scope=scope) for scope in scopes] == [False, False, False]


@pytest.mark.parametrize(
    ("draft", "whose"), [(CubeDraft(content="x", persona="alice"), "member"), (CubeDraft(content="x"), GENERAL)]
)
def test_each_kind_of_key_is_recognised(world: World, draft: CubeDraft, whose: str) -> None:
    cube = cubes_add(actor=world.alice.actor, drafts=[draft])[0].cube
    scope = member_scope(world.alice.member.id) if whose == "member" else GENERAL
    assert not is_key_needed(actor=world.olivia.actor, scope=scope)
    hold_create(actor=world.olivia.actor, draft=HoldDraft(reason="Case 17.", memory_id=cube.id))
    assert is_key_needed(actor=world.olivia.actor, scope=scope)


def test_the_key_of_a_held_subject_is_needed_before_the_first_memory(world: World) -> None:
    hold_create(actor=world.olivia.actor, draft=HoldDraft(reason="Case 17.", subject="carla"))
    subject = subject_ensure(actor=world.olivia.actor, reference="carla")
    assert is_key_needed(actor=world.olivia.actor, scope=subject_scope(subject.id))


def test_only_who_manages_holds_may_ask(world: World) -> None:
    for who in (world.alice, world.bob, world.ada):
        with pytest.raises(Forbidden):
            is_key_needed(actor=who.actor, scope=GENERAL)
