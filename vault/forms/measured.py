"""Figures that are measured once for each model of the installation's engine, and then known to all its processes."""

import json
from collections.abc import Callable
from typing import Any

from django.core.cache import cache

from governance.volatile import volatile

Figures = dict[str, Any]


def measure_once(key: str, measure: Callable[[], Figures]) -> Figures:
    """Return the figures `key`, which are measured where no process knows them. They live as long as Redis's memory."""
    found = read_measured(key)
    if found is None:
        found = measure()
        volatile(lambda client: client.set(key, json.dumps(found)))
        cache.set(key, found, timeout=None)
    return found


def read_measured(key: str) -> Figures | None:
    """Return figures that some process has measured."""
    found: Figures | None = cache.get(key)
    if found is None and (text := volatile(lambda client: client.get(key))):
        found = json.loads(str(text))
        cache.set(key, found, timeout=None)
    return found
