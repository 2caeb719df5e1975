"""Words are sealed, open only in their own place, and under the key of whom they are about."""

from uuid import UUID, uuid4

import pytest

from governance.errors import KeyUnavailable
from governance.keys.services import GENERAL, subject_scope
from tests.factories import World
from vault.content.words import NO_WORDS, Words, key_scope, words_open, words_seal

WORDS = Words(content="内容", title="T", metadata={"a": [1]}, keywords=("k",), speaker="Ann", message_id="m")


def sealed(tenant_id: UUID, cube_id: UUID, number: int = 1, scope: str = GENERAL) -> bytes:
    return words_seal(tenant_id=tenant_id, cube_id=cube_id, number=number, scope=scope, words=WORDS)


def test_words_open_where_they_belong(world: World) -> None:
    cube_id = uuid4()
    blob = sealed(world.acme.id, cube_id)
    assert words_open(tenant_id=world.acme.id, cube_id=cube_id, number=1, blob=blob) == WORDS
    assert "内容".encode() not in blob


def test_words_open_nowhere_else(world: World) -> None:
    cube_id = uuid4()
    blob = sealed(world.acme.id, cube_id)
    for number, cube in ((2, cube_id), (1, uuid4())):
        with pytest.raises(KeyUnavailable):
            words_open(tenant_id=world.acme.id, cube_id=cube, number=number, blob=blob)
    with pytest.raises(KeyUnavailable):
        words_open(tenant_id=world.other.id, cube_id=cube_id, number=1, blob=blob)  # it has no such key


def test_changed_words_do_not_open(world: World) -> None:
    cube_id = uuid4()
    blob = bytearray(sealed(world.acme.id, cube_id))
    blob[-1] ^= 1
    with pytest.raises(KeyUnavailable):
        words_open(tenant_id=world.acme.id, cube_id=cube_id, number=1, blob=bytes(blob))


def test_empty_sealed_words_are_read_as_redacted(world: World) -> None:
    assert words_open(tenant_id=world.acme.id, cube_id=uuid4(), number=1, blob=b"") == NO_WORDS


def test_the_key_is_the_subjects_else_the_personas_members_else_the_tenants() -> None:
    subject, member = uuid4(), uuid4()
    assert key_scope(subject_id=subject, persona_member_id=member) == subject_scope(subject)
    assert str(member) in key_scope(subject_id=None, persona_member_id=member)
    assert key_scope(subject_id=None, persona_member_id=None) == GENERAL


def test_sealing_twice_gives_two_blobs(world: World) -> None:
    cube_id = uuid4()
    assert sealed(world.acme.id, cube_id) != sealed(world.acme.id, cube_id)


def test_nothing_printed_of_words_tells_them() -> None:
    assert "内容" not in repr(WORDS)
    assert "Ann" not in repr(WORDS)
