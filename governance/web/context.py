"""What every template knows: who is signed in."""

from typing import Any

from django.http import HttpRequest

from governance.actor import Actor


def signed_in(request: HttpRequest) -> dict[str, Any]:
    """`actor` of the page, set by the views that require one; None on the pages before sign-in."""
    actor: Actor | None = getattr(request, "actor", None)
    return {"actor": actor}
