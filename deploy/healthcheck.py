"""Exit 0 when the web server of this container is ready: the image's health check."""

import os
import sys
import urllib.error
import urllib.request

PORT = os.environ.get("MEMOS_PORT", "8000")
# The server answers to its own names alone; `.example.com` stands for a domain with all that is below it.
HOST = os.environ.get("MEMOS_ALLOWED_HOSTS", "").partition(",")[0].lstrip(".") or "localhost"


def main() -> int:
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}/readyz", headers={"Host": HOST})
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            answer.read()
    except (OSError, urllib.error.HTTPError) as error:
        sys.stderr.write(f"not ready: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
