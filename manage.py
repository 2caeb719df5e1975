#!/usr/bin/env python
"""The command line of MemOS Web; `manage.py help` lists what it can do."""

import os
import sys

from memos_web.config import ConfigError


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memos_web.settings.embedded")
    from django.core.management import execute_from_command_line
    from django.db import OperationalError

    try:
        execute_from_command_line(sys.argv)
    except ConfigError as error:
        print(f"memos: {error}", file=sys.stderr)
        return 2
    except OperationalError as error:
        print(f"memos: the database does not answer as it should: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
