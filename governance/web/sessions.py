"""The browser's session: which member of which tenant is signed in."""

from uuid import UUID

from django.http import HttpRequest
from django.middleware.csrf import rotate_token

from governance.actor import Actor, CallContext
from governance.errors import Unauthenticated
from governance.tenants.selectors import actor_by_session
from governance.vocabulary import Channel

TENANT, MEMBER = "tenant_id", "member_id"
PURPOSE = "purpose"  # what this browser reads for


def sign_in(request: HttpRequest, actor: Actor) -> None:
    """Start a fresh session for `actor`; what was in an older one is gone."""
    request.session.flush()
    rotate_token(request)
    request.session[TENANT] = str(actor.tenant_id)
    request.session[MEMBER] = str(actor.principal_id)


def actor_of_session(request: HttpRequest, context: CallContext) -> Actor | None:
    """The actor who is signed in, or None: nobody is, or the membership ended."""
    tenant, member = request.session.get(TENANT), request.session.get(MEMBER)
    if not tenant or not member:
        return None
    return actor_by_session(
        tenant_id=UUID(tenant), member_id=UUID(member), request_id=request_id(request), context=context
    )


def web_actor(request: HttpRequest, channel: Channel = Channel.WEB) -> Actor:
    """The actor behind a page. Raises Unauthenticated."""
    purpose: str = request.session.get(PURPOSE, "")
    context = CallContext(channel=channel, purpose=purpose, address=client_address(request))
    actor = actor_of_session(request, context)
    if actor is None:
        raise Unauthenticated
    return actor


def request_id(request: HttpRequest) -> str:
    value: str = request.request_id  # type: ignore[attr-defined]
    return value


def client_address(request: HttpRequest) -> str:
    """The peer's address. A forwarded-for header is read by the server in front, never here."""
    return str(request.META.get("REMOTE_ADDR", ""))
