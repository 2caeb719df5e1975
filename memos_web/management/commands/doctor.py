"""`manage.py doctor`: one line per check, beside a running server or without one."""

import json
import sys
from argparse import ArgumentParser
from dataclasses import asdict

from django.core.management.base import BaseCommand
from django.db import connection

from memos_web.management.checks import Finding, findings
from memos_web.settings.base import CONFIG


class Command(BaseCommand):
    help = "Check configuration, servers, roles, keys and models. Exit code 1 when something is wrong."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON line instead of one line per check")

    def handle(self, *args: object, **options: object) -> None:
        # A pool would wait ten seconds for a server that is not there; a plain connection says so at once.
        connection.settings_dict["OPTIONS"].pop("pool", None)
        found = []
        for finding in findings(CONFIG):
            found.append(finding)
            if not options["json"]:
                self.stdout.write(_line(finding))
        healthy = all(finding.ok for finding in found)
        if options["json"]:
            self.stdout.write(json.dumps({"ok": healthy, "checks": [asdict(finding) for finding in found]}))
        if not healthy:
            sys.exit(1)


def _line(finding: Finding) -> str:
    return f"{'ok  ' if finding.ok else 'FAIL'}  {finding.check}: {finding.detail}"
