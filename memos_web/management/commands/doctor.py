"""`manage.py doctor`: prints one line per check, with or without a running server."""

import json
import sys
from argparse import ArgumentParser
from dataclasses import asdict
from itertools import chain

from governance.management.base import InstalledCommand
from memos_web.management.checks import Finding, findings
from memos_web.management.proxy_check import check_proxy
from memos_web.settings.base import CONFIG


class Command(InstalledCommand):
    help = "Check configuration, servers, roles, keys and models. Exit code 1 when something is wrong."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--url", help="also ask through the proxy at this address: https://memos.example")
        parser.add_argument("--json", action="store_true", help="one JSON line instead of one line per check")

    def handle(self, *args: object, **options: object) -> None:
        found = []
        proxy = [check_proxy(str(options["url"]))] if options["url"] else []
        for finding in chain(findings(CONFIG), proxy):
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
