"""Sealing and keyed tokens, pure."""

import os
from uuid import uuid4

import pytest

from governance.keys.rules import (
    KEY_BYTES,
    DataKey,
    SealBroken,
    derive,
    key_id_of,
    keyed_hash,
    keyed_token,
    seal,
    unseal,
)

KEY = DataKey(id=uuid4(), secret=os.urandom(KEY_BYTES))
WORDS = b"The nightingale sings at noon."


def test_what_is_sealed_opens_under_its_key_in_its_place() -> None:
    blob = seal(KEY, WORDS, place=b"cube 1")
    assert unseal(KEY, blob, place=b"cube 1") == WORDS
    assert key_id_of(blob) == KEY.id
    assert b"nightingale" not in blob


def test_the_same_words_never_look_the_same() -> None:
    assert seal(KEY, WORDS, place=b"here") != seal(KEY, WORDS, place=b"here")


def test_it_does_not_open_elsewhere() -> None:
    with pytest.raises(SealBroken):
        unseal(KEY, seal(KEY, WORDS, place=b"cube 1"), place=b"cube 2")


def test_it_does_not_open_under_another_key() -> None:
    other = DataKey(id=KEY.id, secret=os.urandom(KEY_BYTES))
    with pytest.raises(SealBroken):
        unseal(other, seal(KEY, WORDS, place=b"here"), place=b"here")


def test_no_changed_byte_of_nonce_words_or_tag_opens() -> None:
    blob = seal(KEY, WORDS, place=b"here")
    for position in range(17, len(blob)):
        changed = bytes([*blob[:position], blob[position] ^ 1, *blob[position + 1 :]])
        with pytest.raises(SealBroken):
            unseal(KEY, changed, place=b"here")
    with pytest.raises(SealBroken):
        unseal(KEY, blob[:-1], place=b"here")


@pytest.mark.parametrize("blob", [b"", b"short", b"\x02" + bytes(60), bytes(60)])
def test_it_refuses_what_is_no_sealed_blob(blob: bytes) -> None:
    with pytest.raises(SealBroken):
        key_id_of(blob)


def test_a_key_does_not_show_itself() -> None:
    assert KEY.secret.hex() not in repr(KEY)
    assert repr(KEY.secret) not in repr(KEY)


def test_each_purpose_has_a_key_of_its_own() -> None:
    master = bytes(32)
    assert derive(master, "one") == derive(master, "one")
    assert len({derive(master, "one"), derive(master, "two"), derive(os.urandom(32), "one")}) == 3


def test_tokens_tell_kinds_words_and_tenants_apart() -> None:
    secret = bytes(32)
    assert keyed_token(secret, "word", "tea") == keyed_token(secret, "word", "tea")
    others = {
        keyed_token(secret, "word", "tea"),
        keyed_token(secret, "is:speaker", "tea"),
        keyed_token(secret, "word", "te"),
        keyed_token(os.urandom(32), "word", "tea"),
    }
    assert len(others) == 4
    assert all(-(2**63) <= token < 2**63 for token in others)


def test_a_hash_is_of_the_text_however_it_is_composed() -> None:
    assert keyed_hash(bytes(32), "caf\u00e9") == keyed_hash(bytes(32), "cafe\u0301")
    assert keyed_hash(bytes(32), "cafe") != keyed_hash(bytes(32), "caf\u00e9")
