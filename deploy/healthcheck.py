"""Exit 0 when the web server of this container is ready: the image's health check."""

import os
import sys
import urllib.error
import urllib.request

PORT = os.environ.get("MEMOS_PORT", "8000")


def main() -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/readyz", timeout=5) as answer:
            answer.read()
    except (OSError, urllib.error.HTTPError) as error:
        sys.stderr.write(f"not ready: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
