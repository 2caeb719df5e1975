"""Paths of the MemVault."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vault.namespaces.rules import LONGEST_PATH, PathError, check_path, is_under, private_path


@pytest.mark.parametrize("path", ["/a", "/users/alice", "/团队/笔记", "/a.b_c-d@e+f/1", "/" + "x" * (LONGEST_PATH - 1)])
def test_a_path_is_taken_as_it_is(path: str) -> None:
    assert check_path(path) == path


@pytest.mark.parametrize("path", ["", "/", "a", "/a/", "//a", "/a//b", "/a b", "/.", "/..", "/a/../b", "/a\n", "/a?"])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(PathError):
        check_path(path)


@given(st.text(max_size=30))
def test_whatever_passes_has_no_empty_and_no_climbing_part(text: str) -> None:
    try:
        parts = check_path(text).split("/")[1:]
    except PathError:
        return
    assert all(part not in {"", ".", ".."} for part in parts)


def test_under_means_the_path_itself_or_a_part_of_it() -> None:
    assert is_under("/users", "/users")
    assert is_under("/users/a", "/users")
    assert not is_under("/usersa", "/users")
    assert not is_under("/team/users", "/users")


@given(st.text(max_size=120))
def test_every_name_has_a_home_that_is_a_path(name: str) -> None:
    path = private_path(name, taken=True, member_id="01890a5d-ac96-774b-bcce-b302099a8057")
    assert check_path(path).startswith("/users/")
    assert path.endswith("b302099a8057")
