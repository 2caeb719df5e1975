"""Steps of a sign-in. Pure."""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from governance.actor import Actor


class Way(StrEnum):
    """The kinds of first factor of a sign-in."""

    PASSWORD = "password"
    LINK = "link"
    INVITATION = "invitation"
    OIDC = "oidc"
    RESET = "reset"  # a new password by a mailed link
    SWITCH = "switch"  # no sign-in: another organisation of the same session


@dataclass(frozen=True)
class FirstFactor:
    """A person who has shown one factor. `bound_to`: the only tenant that it opens.

    A factor that an admin of a tenant can make or vouch for opens that tenant alone: a link, a forwarded invitation,
    the tenant's own sign-in server, or a password set with such a link.
    """

    user_id: UUID
    bound_to: UUID | None
    way: Way


@dataclass(frozen=True)
class TrustedBrowser:
    """A browser in which this person has signed in before, as its signed cookie proves."""

    user_id: UUID
    nonce: str


@dataclass(frozen=True)
class SignedIn:
    """A person with a browser session. `strong`: they have shown a second factor in this session.

    by_server: the tenant's sign-in server vouches for the person, and the session ends with that server. timezone: an
    IANA name; this member's pages show times in it.
    """

    actor: Actor
    user_id: UUID
    session_id: UUID
    bound_to: UUID | None
    strong: bool
    second_factor_required: bool
    is_operator: bool = False
    timezone: str = "UTC"
    by_server: bool = False

    @property
    def lacks_second_factor(self) -> bool:
        return self.second_factor_required and not self.strong


@dataclass(frozen=True)
class Limits:
    """Limits on attempts: the number of free tries, and the growth of the wait afterwards, in seconds."""

    free: int
    first_wait: int
    longest_wait: int


def wait_after(tries: int, limits: Limits) -> int:
    """Return the seconds to wait after the given number of tries: none while they are free, then doubling each time."""
    if tries < limits.free:
        return 0
    return min(limits.first_wait << min(tries - limits.free, 30), limits.longest_wait)
