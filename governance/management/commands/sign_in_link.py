"""Create a one-time sign-in link for a member."""

from argparse import ArgumentParser
from typing import Any

from governance.management.base import DomainCommand, actor_for
from governance.tenants.selectors import member_by_email
from governance.tenants.services import sign_in_link_create


class Command(DomainCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--tenant", required=True, help="slug")
        parser.add_argument("--email", required=True)

    def act(self, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        actor = actor_for(options["tenant"])
        link = sign_in_link_create(actor=actor, member=member_by_email(actor=actor, email=options["email"]))
        reply = {"sign_in_link": link.url, "expires_at": link.expires_at.isoformat()}
        return reply, [f"sign in  {link.url}   (once, until {link.expires_at:%Y-%m-%d %H:%M} UTC)"]
