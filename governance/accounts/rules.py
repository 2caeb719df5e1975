"""Steps of a sign-in. Pure."""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from governance.actor import Actor


class Way(StrEnum):
    """The first factor of a sign-in."""

    PASSWORD = "password"
    LINK = "link"
    INVITATION = "invitation"
    OIDC = "oidc"
    RESET = "reset"  # a new password by a mailed link
    SWITCH = "switch"  # no sign-in: another organisation of the same session


@dataclass(frozen=True)
class FirstFactor:
    """A person who has shown one factor. `bound_to`: the only tenant that it opens.

    What somebody who governs a tenant can make or vouch for (a link, an invitation handed on, the tenant's own sign-in
    server, a password set with such a link) opens that tenant alone: it proves nothing to another one.
    """

    user_id: UUID
    bound_to: UUID | None
    way: Way


@dataclass(frozen=True)
class TrustedBrowser:
    """A browser in which this person has signed in before, as a signed cookie of its own says."""

    user_id: UUID
    nonce: str


@dataclass(frozen=True)
class SignedIn:
    """A person in front of a browser. `strong`: they have shown a second factor in this session.

    timezone: an IANA name, in which this member's pages tell times.
    """

    actor: Actor
    user_id: UUID
    session_id: UUID
    bound_to: UUID | None
    strong: bool
    second_factor_required: bool
    is_operator: bool = False
    timezone: str = "UTC"

    @property
    def lacks_second_factor(self) -> bool:
        return self.second_factor_required and not self.strong


@dataclass(frozen=True)
class Limits:
    """Limits on attempts: how many are free, and how the wait grows afterwards, in seconds."""

    free: int
    first_wait: int
    longest_wait: int


def wait_after(tries: int, limits: Limits) -> int:
    """Seconds to wait after the try with this number: none while they are free, then twice as long each time."""
    if tries < limits.free:
        return 0
    return min(limits.first_wait << min(tries - limits.free, 30), limits.longest_wait)
