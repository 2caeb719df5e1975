"""Django's command line without the commands that mean nothing here."""

from typing import Any

from django.core.management import ManagementUtility, get_commands

OF_PASSWORDS = ("changepassword", "createsuperuser")  # people sign in by links, and nobody is above the tenants


class CommandLine(ManagementUtility):
    """Raises CommandError for a wrong option of a command of ours."""

    def main_help_text(self, commands_only: bool = False) -> str:
        _forget(OF_PASSWORDS)
        return super().main_help_text(commands_only)

    def fetch_command(self, subcommand: str) -> Any:
        _forget(OF_PASSWORDS)
        return super().fetch_command(subcommand)


def _forget(names: tuple[str, ...]) -> None:
    for name in names:
        get_commands().pop(name, None)
