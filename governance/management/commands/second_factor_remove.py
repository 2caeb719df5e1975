"""Remove the second factor of a person who has lost phone and recovery codes."""

from argparse import ArgumentParser
from typing import Any

from governance.accounts.factors import factors_forget
from governance.errors import NotFound
from governance.management.base import DomainCommand
from governance.tenants.selectors import user_id_by_email


class Command(DomainCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--email", required=True)

    def act(self, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        user_id = user_id_by_email(options["email"])
        if user_id is None:
            raise NotFound(f"Nobody has the address {options['email']}.")
        removed = factors_forget(user_id=user_id)
        return {"removed": removed}, [
            "second factor removed" if removed else "nothing to remove: this person has no second factor"
        ]
