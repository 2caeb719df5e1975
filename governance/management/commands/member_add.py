"""Add a member to a tenant, and print a sign-in link."""

from argparse import ArgumentParser
from typing import Any

from governance.management.base import DomainCommand, actor_for
from governance.tenants.services import member_add, sign_in_link_create
from governance.vocabulary import RoleName


class Command(DomainCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--tenant", required=True, help="slug")
        parser.add_argument("--email", required=True)
        parser.add_argument("--role", required=True, choices=[role.value for role in RoleName])

    def act(self, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        actor = actor_for(options["tenant"])
        member = member_add(actor=actor, email=options["email"], role=RoleName(options["role"]))
        link = sign_in_link_create(actor=actor, member=member)
        reply = {
            "member": {"id": str(member.id), "email": options["email"], "role": options["role"]},
            "sign_in_link": link.url,
        }
        return reply, [f"member   {options['email']} ({options['role']})", f"sign in  {link.url}"]
