"""The states of a memory and the legal transitions (MemOS, arXiv 2507.03724, §5.4). Pure."""

from collections.abc import Mapping
from enum import StrEnum

from vault.vocabulary import State


class Cause(StrEnum):
    """The causes of a transition. REQUEST: a user's request, or a lifecycle job."""

    REQUEST = "request"
    FUSION = "fusion"
    EXPIRY = "expiry"
    RESTORE = "restore"
    UNDO_OF_FUSION = "undo_of_fusion"


_EXPIRY = {State.EXPIRED: Cause.EXPIRY}
STEPS: Mapping[State, Mapping[State, Cause]] = {
    State.GENERATED: {
        State.ACTIVATED: Cause.REQUEST,
        State.MERGED: Cause.FUSION,
        State.ARCHIVED: Cause.REQUEST,
        **_EXPIRY,
    },
    State.ACTIVATED: {State.MERGED: Cause.FUSION, State.ARCHIVED: Cause.REQUEST, **_EXPIRY},
    State.MERGED: {
        State.GENERATED: Cause.UNDO_OF_FUSION,
        State.ACTIVATED: Cause.UNDO_OF_FUSION,
        State.ARCHIVED: Cause.REQUEST,
        **_EXPIRY,
    },
    State.ARCHIVED: {State.ACTIVATED: Cause.REQUEST, **_EXPIRY},
    State.EXPIRED: dict.fromkeys((State.GENERATED, State.ACTIVATED, State.MERGED, State.ARCHIVED), Cause.RESTORE),
}


def legal_states(state: State, cause: Cause = Cause.REQUEST) -> tuple[State, ...]:
    """Return the states that `cause` leads to from `state`, in the order of the life cycle."""
    return tuple(to for to in State if STEPS[state].get(to) is cause)


def is_legal(state: State, to: State, cause: Cause = Cause.REQUEST) -> bool:
    return STEPS[state].get(to) is cause
