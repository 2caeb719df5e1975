"""Log filters: they remove sign-in tokens and noise."""

import logging
import re

LINK = re.compile(r"(/(?:sign-in|invitation|reset)/)[^/\s]+")


class WithoutLinks(logging.Filter):
    """Removes the tokens of sign-in links from the logged addresses of refused requests."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if LINK.search(message):
            record.msg, record.args = LINK.sub(r"\1…", message), None
        return True


class HostInOneLine(logging.Filter):
    """Shortens the log of a refused host to one line, which names the setting for an operator to change."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = f"{record.getMessage().partition('. You may')[0]}: not among MEMOS_ALLOWED_HOSTS"
        record.args, record.exc_info = None, None
        return True
