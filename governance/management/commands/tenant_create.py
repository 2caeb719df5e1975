"""Create a tenant with its owner, default schedules, an API key and a sign-in link."""

from argparse import ArgumentParser
from typing import Any

from governance.actor import CallContext
from governance.jobs.schedules import schedules_create_defaults
from governance.management.base import DomainCommand
from governance.tenants.principals import reload_actor
from governance.tenants.services import apikey_create, command_line_actor, sign_in_link_create, tenant_create
from governance.vocabulary import Channel, PrincipalKind, Scope


class Command(DomainCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("slug")
        parser.add_argument("--owner", required=True, help="e-mail address")
        parser.add_argument("--name", default="")

    def act(self, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        tenant, owner = tenant_create(slug=options["slug"], name=options["name"], owner_email=options["owner"])
        actor = command_line_actor(tenant.id)
        key = apikey_create(actor=actor, member=owner, scopes=list(Scope), name="first")
        link = sign_in_link_create(actor=actor, member=owner)
        kind, context = PrincipalKind.MEMBER, CallContext(channel=Channel.COMMAND_LINE)
        founder = reload_actor(
            tenant_id=tenant.id, kind=kind, principal_id=owner.id, request_id=actor.request_id, context=context
        )
        schedules_create_defaults(actor=founder)  # they run with the rights of the owner
        reply = {
            "tenant": {"id": str(tenant.id), "slug": tenant.slug},
            "owner": {"id": str(owner.id), "email": options["owner"]},
            "api_key": key.text,
            "sign_in_link": link.url,
        }
        return reply, [
            f"tenant   {tenant.slug}",
            f"owner    {options['owner']}",
            f"API key  {key.text}   (shown this once)",
            f"sign in  {link.url}",
        ]
