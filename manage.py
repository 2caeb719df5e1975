#!/usr/bin/env python
"""The command line of MemOS Web; `manage.py help` lists what it can do."""

import gc
import os
import sys

from memos_web.config import ConfigError

YOUNG = 50_000  # objects that are made before the collector looks at them: modules and models live until the end


def main() -> int:
    gc.set_threshold(YOUNG)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memos_web.settings.embedded")
    if sys.argv[1:] == ["up"]:
        from memos_web.embedded.__main__ import main as up  # without Django, which would take seconds

        return up()
    from django.core.management import CommandError
    from django.db import OperationalError

    from memos_web.command_line import CommandLine

    try:
        CommandLine(sys.argv).execute()
    except CommandError as error:
        print(f"memos: {str(error).removeprefix('Error: ')}", file=sys.stderr)
        return 2
    except ConfigError as error:
        print(f"memos: {error}", file=sys.stderr)
        return 2
    except OperationalError as error:
        print(f"memos: the database does not answer as it should: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    finally:
        gc.freeze()  # else half a second of processor time is spent at exit, looking for what to free
    return 0


if __name__ == "__main__":
    sys.exit(main())
