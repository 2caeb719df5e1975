"""Create an API key for a member. The key is shown only once."""

from argparse import ArgumentParser, ArgumentTypeError
from datetime import UTC, datetime
from typing import Any

from governance.management.base import DomainCommand, actor_for
from governance.tenants.selectors import member_by_email
from governance.tenants.services import apikey_create
from governance.time_range import OUT_OF_RANGE, is_in_range
from governance.vocabulary import Scope


def moment(text: str) -> datetime:
    """Return an ISO 8601 date or time, in UTC unless the text has a zone."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError as error:
        raise ArgumentTypeError("a date or time such as 2027-01-31 or 2027-01-31T12:00:00Z") from error
    if not is_in_range(parsed):
        raise ArgumentTypeError(OUT_OF_RANGE)
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def scopes(text: str) -> list[Scope]:
    """Return scopes that commas or spaces separate."""
    names = text.replace(",", " ").split()
    unknown = sorted(set(names) - set(Scope))
    if unknown or not names:
        raise ArgumentTypeError(f"some of {', '.join(Scope)}")
    return [Scope(name) for name in names]


class Command(DomainCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--tenant", required=True, help="slug")
        parser.add_argument("--member", required=True, help="e-mail address")
        parser.add_argument("--scopes", type=scopes, default=list(Scope), help=f"of {', '.join(Scope)}; default all")
        parser.add_argument("--expires", type=moment, default=None)
        parser.add_argument("--name", default="")

    def act(self, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        actor = actor_for(options["tenant"])
        key = apikey_create(
            actor=actor,
            member=member_by_email(actor=actor, email=options["member"]),
            scopes=options["scopes"],
            name=options["name"],
            expires_at=options["expires"],
        )
        reply = {"id": str(key.id), "prefix": key.prefix, "api_key": key.text}
        return reply, [f"API key  {key.text}   (shown this once)"]
