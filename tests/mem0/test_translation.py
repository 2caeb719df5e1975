"""Filters and options of mem0 in our words; what has no equal is refused, never left out."""

from typing import Any

import pytest

from memos_web.mem0.translation import end_of, filters_of, history, make_addition, make_changes, moment
from memos_web.protocols import NotTranslated


@pytest.mark.parametrize(
    ("asked", "ours"),
    [
        ({"filters": {"user_id": "anna"}}, {"persona": "anna"}),
        ({"user_id": "anna", "run_id": 7}, {"AND": [{"persona": "anna"}, {"session_id": 7}]}),
        ({"filters": {"agent_id": {"in": ["a", "b"]}}}, {"metadata.agent_id": {"in": ["a", "b"]}}),
        ({"filters": {"metadata": {"topic": "tea"}}}, {"metadata.topic": "tea"}),
        (
            {"filters": {"OR": [{"user_id": "anna"}, {"categories": {"icontains": "food"}}]}},
            {"OR": [{"persona": "anna"}, {"tags": {"contains": "food"}}]},
        ),
        (
            {"filters": {"NOT": [{"user_id": "a"}, {"user_id": "b"}]}},
            {"NOT": {"OR": [{"persona": "a"}, {"persona": "b"}]}},
        ),
        ({"filters": {"created_at": {"gte": "2026-01-01"}}}, {"said_at": {"gte": "2026-01-01"}}),
        ({"end_date": "2026-01-31"}, {"said_at": {"lt": "2026-02-01"}}),
        ({"filters": {"created_at": "2026-01-31"}}, {"said_at": {"gte": "2026-01-31", "lt": "2026-02-01"}}),
        (
            {"filters": {"updated_at": {"gt": "2026-01-31", "lte": "2026-05-01T10:00:00"}}},
            {"AND": [{"updated_at": {"gte": "2026-02-01"}}, {"updated_at": {"lte": "2026-05-01T10:00:00+00:00"}}]},
        ),
        ({"filters": {"timestamp": {"ne": 0}}}, {"NOT": {"said_at": {"eq": "1970-01-01T00:00:00+00:00"}}}),
        (
            {"filters": {"created_at": {"in": ["2026-01-31"]}}},
            {"said_at": {"gte": "2026-01-31", "lt": "2026-02-01"}},
        ),
        ({"filters": {"expiration_date": {"lte": "2026-12-31"}}}, {"expires_at": {"lte": "2027-01-01T00:00:00+00:00"}}),
        ({"filters": {"memory_ids": ["m1", "m2"]}}, {"id": {"in": ["m1", "m2"]}}),
        ({"filters": {"user_id": "*"}}, {"persona": {"exists": True}}),
        ({"filters": {"run_id": {"ne": "*"}}}, {"session_id": {"exists": False}}),
        ({"filters": {"agent_id": {"in": ["*"]}}}, {"metadata.agent_id": {"exists": True}}),
        ({"filters": {"user_id": {"in": ["*"], "ne": "u1"}}}, {"persona": {"exists": True, "ne": "u1"}}),
        ({"filters": {"user_id": "anna", "agent_id": None, "run_id": " "}, "app_id": ""}, {"persona": "anna"}),
        ({"filters": {"metadata": {"stars": {"gte": 4}}}}, {"metadata.stars": {"gte": 4}}),
        (
            {"filters": {"user_id": "anna"}, "start_date": "2026-01-01", "categories": ["food"]},
            {"AND": [{"persona": "anna"}, {"tags": {"in": ["food"]}}, {"said_at": {"gte": "2026-01-01"}}]},
        ),
        ({"filters": {"keywords": {"icontains": "Green tea"}}}, {"content": {"contains": "Green tea"}}),
        ({}, None),
    ],
)
def test_filters_say_the_same(asked: dict[str, Any], ours: Any) -> None:
    assert filters_of(asked) == ours


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ({"filters": {"structured_attributes": {"contains": "tea"}}}, "structured_attributes"),
        ({"filters": {"keywords": "tea"}}, "contains"),
        ({"filters": {"user_id": {"like": "a"}}}, "like"),
        ({"filters": {"user_id": {"nin": ["*"]}}}, "nin"),
        ({"filters": {"run_id": {"icontains": "*"}}}, "run_id"),
        ({"filters": {"run_id": {"gt": "*"}}}, "run_id"),
        ({"filters": {"user_id": {"in": ["*", "u1"]}}}, "others"),
        ({"filters": {"user_id": ["*", "u1"]}}, "others"),
        ({"filters": {"user_id": {"in": ["*"], "ne": "*"}}}, "alone"),
        ({"filters": ["user_id"]}, "object"),
        ({"filters": {"AND": []}}, "empty"),
        ({"filters": {"AND": ["user_id"]}}, "object"),
        ({"show_expired": True}, "show_expired"),
    ],
)
def test_a_filter_without_an_equal_is_refused_by_name(asked: dict[str, Any], names: str) -> None:
    with pytest.raises(NotTranslated, match=names):
        filters_of(asked)


def test_messages_are_added_with_their_user_run_agent_and_times() -> None:
    asked = {
        "messages": [{"role": "user", "content": "tea"}],
        "user_id": "anna",
        "filters": {"agent_id": "kettle"},
        "run_id": 7,
        "metadata": {"topic": "tea"},
        "timestamp": 0,
        "expiration_date": "2026-12-31",
    }
    assert make_addition(asked) == {
        "messages": [{"role": "user", "content": "tea"}],
        "infer": True,
        "persona": "anna",
        "session_id": "7",
        "metadata": {"topic": "tea", "agent_id": "kettle"},
        "event_time": "1970-01-01T00:00:00+00:00",
        "expires_at": "2027-01-01T00:00:00+00:00",
    }


@pytest.mark.parametrize("option", ["custom_instructions", "structured_data_schema", "enable_graph"])
def test_an_option_that_would_be_ignored_is_refused(option: str) -> None:
    with pytest.raises(NotTranslated, match=option):
        make_addition({"messages": [], option: "x"})


def test_immutable_memory_is_not_changed() -> None:
    added = make_addition({"messages": [], "immutable": True, "custom_categories": [{"food": "Meals"}, {"trips": ""}]})
    assert (added["metadata"], added["categories"]) == ({"immutable": True}, {"food": "Meals", "trips": ""})
    with pytest.raises(NotTranslated, match="immutable"):
        make_changes({"text": "coffee"}, added["metadata"])
    with pytest.raises(NotTranslated, match="custom_categories"):
        make_addition({"messages": [], "custom_categories": ["food"]})


def test_a_change_keeps_agent_and_app_and_can_end_an_expiry() -> None:
    changes = make_changes(
        {"text": "coffee", "metadata": {"topic": "coffee"}, "expiration_date": None}, {"agent_id": "kettle"}
    )
    assert changes == {
        "content": "coffee",
        "metadata": {"topic": "coffee", "agent_id": "kettle"},
        "expires_at": None,
    }
    with pytest.raises(NotTranslated, match="Nothing to change"):
        make_changes({}, {})


def test_history_begins_with_the_oldest_version() -> None:
    rows: list[dict[str, Any]] = [{"version": n, "content": f"v{n}", "metadata": {}, "created_at": "t"} for n in (2, 1)]
    assert [(version["event"], version["old_memory"], version["new_memory"]) for version in history("m", rows)] == [
        ("ADD", None, "v1"),
        ("UPDATE", "v1", "v2"),
    ]


@pytest.mark.parametrize("value", ["soon", 7, "9999-12-31"])
def test_a_date_that_is_none_is_refused(value: Any) -> None:
    with pytest.raises(NotTranslated, match="expiration_date"):
        end_of(value)


def test_a_time_that_is_none_is_refused() -> None:
    with pytest.raises(NotTranslated, match="timestamp"):
        moment(10**30)
