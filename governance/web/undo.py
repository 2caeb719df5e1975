"""Messages about what a member just did, and the last deeds that the member can undo from any page.

Both belong to the browser's session. A deed is undone by a form: the same as in the message that followed it.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone

MESSAGE, DEEDS = "undo", "deeds"  # names in the session
MOST_DEEDS = 5
MOST_IDS = 400  # memories of all deeds, which each request reads with its session


def put_message(
    request: HttpRequest,
    words: str,
    *,
    address: str = "",
    action: str = "",
    ids: Sequence[str] = (),
    after: str = "",
    since: str = "",
    fields: dict[str, Any] | None = None,
) -> None:
    """Show `words` on the next page, with Undo if there is an `address`, which takes the form.

    action, ids, since: fields of the form; after: the page after it; fields: data of the deed that stay on the server.
    An undo itself gets no Undo, and is no deed.
    """
    if not address or request.POST.get("deed"):
        request.session[MESSAGE] = {"words": words, "address": ""}
        return
    deed = {
        "id": uuid4().hex,
        "tenant": _tenant(request),
        "at": timezone.now().isoformat(),
        "words": words,
        "address": address,
        "action": action,
        "ids": list(ids),
        "next": after,
        "since": since,
        "fields": fields or {},
    }
    request.session[MESSAGE] = deed
    kept = [*request.session.get(DEEDS, []), deed][-MOST_DEEDS:]
    while sum(len(one["ids"]) for one in kept) > MOST_IDS and len(kept) > 1:
        del kept[0]
    request.session[DEEDS] = kept


def take_message(request: HttpRequest) -> dict[str, Any] | None:
    """Return the message for this page, once."""
    message: dict[str, Any] | None = request.session.pop(MESSAGE, None)
    return message


def list_deeds(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the deeds that can be undone, newest first; `moment` is the time of each."""
    earliest = timezone.now() - timedelta(days=settings.DELETED_GRACE_DAYS)
    deeds = [deed | {"moment": datetime.fromisoformat(deed["at"])} for deed in request.session.get(DEEDS, [])]
    return [deed for deed in reversed(deeds) if deed["moment"] > earliest and deed["tenant"] == _tenant(request)]


def find_deed(request: HttpRequest) -> dict[str, Any] | None:
    """Return the deed that the form names."""
    return next((deed for deed in list_deeds(request) if deed["id"] == request.POST.get("deed")), None)


def drop_deed(request: HttpRequest) -> None:
    """Remove the deed that the form names: it was undone, or cannot be undone any more."""
    if wanted := request.POST.get("deed"):
        request.session[DEEDS] = [deed for deed in request.session.get(DEEDS, []) if deed["id"] != wanted]


def _tenant(request: HttpRequest) -> str:
    return str(request.actor.tenant_id)  # type: ignore[attr-defined]
