"""Entry point of `manage.py up`: the supervisor, without Django."""

import os
import sys

from memos_web.config import ConfigError, read_config
from memos_web.embedded.errors import StartError
from memos_web.embedded.product_programs import ROOT
from memos_web.embedded.supervisor import say, supervise


def main() -> int:
    """Serve until a stop is requested, and return the exit code."""
    try:
        config = read_config(os.environ)
        os.environ["MEMOS_DATA_DIR"] = str(config.data_dir)
        os.chdir(ROOT)
        supervise(config)
    except ConfigError as error:
        say(str(error))
        return 2
    except StartError as error:
        say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
