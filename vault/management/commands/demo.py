"""Fill a tenant with sample data of a small workshop, and print a sign-in link for each member."""

from argparse import ArgumentParser
from typing import Any

from governance.management.base import DomainCommand, actor_for
from governance.tenants.selectors import member_by_email
from governance.tenants.services import sign_in_link_create
from vault.demo.packs import PUBLISHER_NAME, demo_packs_create
from vault.demo.services import demo_create


class Command(DomainCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--tenant", default="demo", help="slug of the tenant to make; default %(default)s")

    def act(self, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        made = demo_create(slug=options["tenant"])
        packs = demo_packs_create(subscriber=made.slug)
        actor = actor_for(made.slug)
        people = [
            {
                "email": email,
                "role": role,
                "sign_in_link": sign_in_link_create(actor=actor, member=member_by_email(actor=actor, email=email)).url,
            }
            for email, role in made.people
        ]
        reply = {
            "tenant": made.slug,
            "new": made.new,
            "memories": made.memories,
            "packs": packs,
            "people": people,
        }
        done = "filled" if made.new else "there already, nothing changed"
        lines = [f"{made.name} (tenant {made.slug}): {done}, {made.memories} memories"]
        lines.append(f"{PUBLISHER_NAME}: {packs} packs are published in the MemStore, /store/")
        lines += ["Sign in with one of these links; each works once, and the next run prints new ones:"]
        lines += [f"  {person['role']:8} {person['email']:28} {person['sign_in_link']}" for person in people]
        return reply, lines
