"""Errors while the embedded servers start."""


class StartError(Exception):
    """The start failed. The message is one line for a person."""


class StopRequested(Exception):
    """A stop of this process was requested: Ctrl-C, SIGTERM, or a closed terminal."""
