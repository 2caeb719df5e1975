"""Python's garbage collector in processes that make many objects at once."""

import gc

YOUNG = 50_000  # objects that are made before the collector looks at them; Python's own 700 costs a bulk call a fifth


def collect_seldom() -> None:
    """Let the collector look at new objects seldom, and never again at those that are there now."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG)
