"""Log filters: they remove sign-in tokens and noise."""

import logging
import re

LINK = re.compile(r"(/(?:sign-in|invitation|reset)/)[^/\s]+")


class WithoutLinks(logging.Filter):
    """Django logs the address of a refused request; the token of a sign-in link stands in its address."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if LINK.search(message):
            record.msg, record.args = LINK.sub(r"\1…", message), None
        return True


class HostInOneLine(logging.Filter):
    """A refused host is no fault of ours: no traceback, and the setting by the name that an operator knows."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = f"{record.getMessage().partition('. You may')[0]}: not among MEMOS_ALLOWED_HOSTS"
        record.args, record.exc_info = None, None
        return True
