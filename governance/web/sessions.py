"""The browser's session: the signed-in person and tenant, or the steps of an unfinished sign-in."""

import time
from uuid import UUID
from zoneinfo import available_timezones

from django.http import HttpRequest
from django.middleware.csrf import rotate_token

from governance.accounts.rules import FirstFactor, SignedIn, Way
from governance.accounts.selectors import StoredSession, find_signed_in
from governance.actor import Actor, CallContext
from governance.errors import SecondFactorRequired, Unauthenticated
from governance.vocabulary import Channel

TENANT, MEMBER, USER, SESSION, BOUND_TO, STRONG, BY_SERVER = (
    "tenant_id",
    "member_id",
    "user_id",
    "session_id",
    "bound_to",
    "strong",
    "by_server",
)
FIRST = "first_factor"
FIRST_SECONDS = 600  # between the first factor and the end of the sign-in
ZONE_COOKIE = "memos_zone"
PURPOSE = "purpose"  # what this browser reads for
PERSONA = "persona"  # id and name of the persona that new memories are stored for


def sign_in(request: HttpRequest, person: SignedIn) -> None:
    """Start a new session for `person`; the data of the older one are deleted."""
    request.session.flush()
    rotate_token(request)
    request.session[TENANT] = str(person.actor.tenant_id)
    request.session[MEMBER] = str(person.actor.principal_id)
    request.session[USER] = str(person.user_id)
    request.session[SESSION] = str(person.session_id)
    request.session[BOUND_TO] = str(person.bound_to or "")
    request.session[STRONG] = person.strong
    request.session[BY_SERVER] = person.by_server


def mark_strong(request: HttpRequest) -> None:
    """Store that the person has shown a second factor in this session."""
    request.session.cycle_key()
    request.session[STRONG] = True


def first_factor_keep(request: HttpRequest, first: FirstFactor, *, strong: bool = False) -> None:
    """Store the passed first factor in a session without a person."""
    request.session.flush()
    rotate_token(request)
    request.session[FIRST] = [str(first.user_id), str(first.bound_to or ""), first.way, time.time(), strong]


def first_factor_pending(request: HttpRequest) -> tuple[FirstFactor, bool]:
    """Return the passed first factor, and whether a second factor was shown. Raises Unauthenticated."""
    stored = request.session.get(FIRST)
    if not stored or time.time() - stored[3] > FIRST_SECONDS:
        raise Unauthenticated
    first = FirstFactor(user_id=UUID(stored[0]), bound_to=UUID(stored[1]) if stored[1] else None, way=Way(stored[2]))
    return first, bool(stored[4])


def person_of_session(request: HttpRequest, context: CallContext) -> SignedIn | None:
    """Return the signed-in person, or None if there is none or the session or membership has ended.

    Sets `request.timezone`, in which pages show times, and `request.is_operator`.
    """
    words = {name: request.session.get(name) for name in (TENANT, MEMBER, USER, SESSION)}
    if not all(words.values()):
        return None
    bound_to = request.session.get(BOUND_TO)
    stored = StoredSession(
        tenant_id=UUID(words[TENANT]),
        member_id=UUID(words[MEMBER]),
        user_id=UUID(words[USER]),
        session_id=UUID(words[SESSION]),
        bound_to=UUID(bound_to) if bound_to else None,
        strong=bool(request.session.get(STRONG)),
        by_server=bool(request.session.get(BY_SERVER)),
    )
    person = find_signed_in(stored=stored, request_id=request_id(request), context=context)
    if person is not None:
        request.timezone = person.timezone  # type: ignore[attr-defined]
        request.is_operator = person.is_operator and person.actor.is_proved  # type: ignore[attr-defined]
    return person


def actor_of_session(request: HttpRequest, context: CallContext) -> Actor | None:
    """Return the signed-in actor, or None. Raises SecondFactorRequired."""
    person = person_of_session(request, context)
    if person is not None and person.lacks_second_factor:
        raise SecondFactorRequired("Set up your second factor, or sign in with it.", rule="second_factor")
    return person.actor if person else None


def web_person(request: HttpRequest) -> SignedIn:
    """Return the person of an account page, with or without a second factor. Raises Unauthenticated."""
    person = person_of_session(request, web_context(request))
    if person is None:
        raise Unauthenticated
    return person


def web_actor(request: HttpRequest, channel: Channel = Channel.WEB) -> Actor:
    """Return the actor of a page. Raises Unauthenticated; SecondFactorRequired."""
    actor = actor_of_session(request, web_context(request, channel))
    if actor is None:
        raise Unauthenticated
    return actor


def web_context(request: HttpRequest, channel: Channel = Channel.WEB) -> CallContext:
    """Return the context of a call by this browser, with the purpose that its reader chose."""
    purpose: str = request.session.get(PURPOSE, "")
    return CallContext(channel=channel, purpose=purpose, address=client_address(request))


def persona_of_session(request: HttpRequest) -> dict[str, str] | None:
    """Return id and name of the persona chosen in this browser, or None."""
    chosen: dict[str, str] | None = request.session.get(PERSONA)
    return chosen


def request_id(request: HttpRequest) -> str:
    value: str = request.request_id  # type: ignore[attr-defined]
    return value


def client_address(request: HttpRequest) -> str:
    """Return the address of the peer; only the server in front of the application reads forwarded-for headers."""
    return str(request.META.get("REMOTE_ADDR", ""))


def client_zone(request: HttpRequest) -> str:
    """Return the IANA name of the browser's time zone, which its script stores in a cookie; empty if unknown."""
    zone = request.COOKIES.get(ZONE_COOKIE, "")
    return zone if zone in available_timezones() else ""


def client_agent(request: HttpRequest) -> str:
    """Return the browser's name from its headers."""
    return request.headers.get("User-Agent", "").replace("\x00", "")
