"""Errors while the embedded servers start."""


class StartError(Exception):
    """The start cannot go on; the message is one line for a person."""


class StopRequested(Exception):
    """Someone asked this process to end: Ctrl-C, SIGTERM, or a closed terminal."""
