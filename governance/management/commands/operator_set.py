"""Make a person an operator, who sees /admin/ and /ui/. --remove undoes this."""

from argparse import ArgumentParser
from typing import Any

from governance.accounts.operators import operator_set
from governance.errors import NotFound
from governance.management.base import DomainCommand
from governance.tenants.selectors import user_id_by_email


class Command(DomainCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--email", required=True)
        parser.add_argument("--remove", action="store_true", help="the person is no operator any more")

    def act(self, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        user_id = user_id_by_email(options["email"])
        if user_id is None:
            raise NotFound(f"Nobody has the address {options['email']}.")
        is_operator = not options["remove"]
        changed = operator_set(user_id=user_id, is_operator=is_operator)
        words = "is an operator" if is_operator else "is no operator"
        return {"is_operator": is_operator, "changed": changed}, [f"{options['email']} {words}"]
