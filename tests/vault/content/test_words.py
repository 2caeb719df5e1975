"""Tests of sealed words: they open only for their own version, and their key scope follows the person they concern."""

from uuid import UUID, uuid4

import pytest

from governance.errors import KeyUnavailable
from governance.keys.services import GENERAL, subject_scope
from tests.factories import World
from vault.content.words import NO_WORDS, Words, key_scope, words_open, words_seal

WORDS = Words(content="内容", title="T", metadata={"a": [1]}, keywords=("k",), speaker="Ann", message_id="m")


def seal_words(tenant_id: UUID, cube_id: UUID, number: int = 1, scope: str = GENERAL) -> bytes:
    return words_seal(tenant_id=tenant_id, cube_id=cube_id, number=number, scope=scope, words=WORDS)


def test_words_open_in_their_own_version(world: World) -> None:
    cube_id = uuid4()
    blob = seal_words(world.acme.id, cube_id)
    assert words_open(tenant_id=world.acme.id, cube_id=cube_id, number=1, blob=blob) == WORDS
    assert "内容".encode() not in blob


def test_words_do_not_open_in_another_version_cube_or_tenant(world: World) -> None:
    cube_id = uuid4()
    blob = seal_words(world.acme.id, cube_id)
    for number, cube in ((2, cube_id), (1, uuid4())):
        with pytest.raises(KeyUnavailable):
            words_open(tenant_id=world.acme.id, cube_id=cube, number=number, blob=blob)
    with pytest.raises(KeyUnavailable):
        words_open(tenant_id=world.other.id, cube_id=cube_id, number=1, blob=blob)  # it has no such key


def test_changed_words_do_not_open(world: World) -> None:
    cube_id = uuid4()
    blob = bytearray(seal_words(world.acme.id, cube_id))
    blob[-1] ^= 1
    with pytest.raises(KeyUnavailable):
        words_open(tenant_id=world.acme.id, cube_id=cube_id, number=1, blob=bytes(blob))


def test_empty_sealed_words_are_read_as_redacted(world: World) -> None:
    assert words_open(tenant_id=world.acme.id, cube_id=uuid4(), number=1, blob=b"") == NO_WORDS


def test_key_scope_is_the_subject_then_the_member_then_the_tenant() -> None:
    subject, member = uuid4(), uuid4()
    assert key_scope(subject_id=subject, persona_member_id=member) == subject_scope(subject)
    assert str(member) in key_scope(subject_id=None, persona_member_id=member)
    assert key_scope(subject_id=None, persona_member_id=None) == GENERAL


def test_words_sealed_twice_give_two_blobs(world: World) -> None:
    cube_id = uuid4()
    assert seal_words(world.acme.id, cube_id) != seal_words(world.acme.id, cube_id)


def test_printed_words_show_no_text() -> None:
    assert "内容" not in repr(WORDS)
    assert "Ann" not in repr(WORDS)
