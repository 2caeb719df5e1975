"""If-Match as RFC 9110 §13.1.1 has it: one version, a list of them, or any."""

import pytest

from tests.vault.api.contract import Contract


@pytest.mark.parametrize("header", ["*", '"1"', '"7", "1"', '"other","1"', 'W/"1"'])
def test_a_version_that_is_among_those_named_may_be_changed_and_deleted(alice: Contract, header: str) -> None:
    memory = alice.add("One.")["id"]
    assert alice.patch(f"memories/{memory}/", {"title": "x"}, if_match=header).status == 200
    other = alice.add("Two.")["id"]
    assert alice.delete(f"memories/{other}/", if_match=header).status == 204


def test_version_conflict_names_the_current_and_the_requested_versions(alice: Contract) -> None:
    memory = alice.add("One.")["id"]
    reply = alice.patch(f"memories/{memory}/", {"title": "x"}, if_match='"3", "2"')
    assert (reply.status, reply.json["detail"]) == (412, "The memory is at version 1, not 2, 3.")


def test_an_etag_that_is_no_version_matches_none(alice: Contract) -> None:
    memory = alice.add("One.")["id"]
    reply = alice.patch(f"memories/{memory}/", {"title": "x"}, if_match='"abc"')
    assert (reply.status, reply.code) == (412, "version_conflict")
    assert reply.json["detail"] == 'If-Match names no version: send the ETag that was read, as in "1".'


@pytest.mark.parametrize("header", ["1", "abc", '"1", 2', "**", '"1" "2"', '"1",', ""])
def test_what_is_no_list_of_etags_is_refused_as_such(alice: Contract, bob: Contract, header: str) -> None:
    memory = alice.add("One.", namespace="/team")["id"]
    reply = alice.patch(f"memories/{memory}/", {"title": "x"}, if_match=header)
    assert (reply.status, reply.code) == (400, "invalid_etag")
    assert reply.json["detail"] == 'Write If-Match with quotes, as in "1".'
    assert bob.patch(f"memories/{memory}/", {"title": "x"}, if_match=header).status == 403


def test_any_version_is_still_a_version_of_something_that_is_there(alice: Contract, bob: Contract) -> None:
    memory = alice.add("One.")["id"]
    assert bob.patch(f"memories/{memory}/", {"title": "x"}, if_match="*").status == 404
    assert alice.patch(f"memories/{memory}/", {"speling": "x"}, if_match="*").status == 400
    assert alice.delete(f"memories/{memory}/").status == 204
    assert alice.patch(f"memories/{memory}/", {"title": "x"}, if_match="*").status == 404
