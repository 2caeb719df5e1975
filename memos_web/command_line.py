"""Django's command line without the commands that mean nothing here."""

import textwrap
from typing import Any

from django.core.management import ManagementUtility, get_commands, load_command_class

OF_PASSWORDS = ("changepassword", "createsuperuser")  # people sign in by links, and nobody is above the tenants


OURS = ("governance", "memos_web", "vault")


class CommandLine(ManagementUtility):
    """Raises CommandError for a wrong option of a command of ours."""

    def main_help_text(self, commands_only: bool = False) -> str:
        _forget(OF_PASSWORDS)
        if commands_only:
            return super().main_help_text(commands_only)
        lines = [
            f"    {name:<22} {load_command_class(app, name).help.partition(chr(10))[0]}"
            for name, app in sorted(_ours().items())
        ]
        others = sorted(set(get_commands()) - set(_ours()))
        wrapped = textwrap.wrap(", ".join(others), width=100, initial_indent="    ", subsequent_indent="    ")
        start = f"Type '{self.prog_name} help COMMAND' for the options of one command."
        return "\n".join(["", start, "", "Commands:", *lines, "", "Commands of Django and libraries:", *wrapped])

    def fetch_command(self, subcommand: str) -> Any:
        _forget(OF_PASSWORDS)
        return super().fetch_command(subcommand)


def _ours() -> dict[str, str]:
    return {name: app for name, app in get_commands().items() if app in OURS}


def _forget(names: tuple[str, ...]) -> None:
    for name in names:
        get_commands().pop(name, None)
