"""One PostgreSQL and one Redis for the whole run; a database of its own for each test that asks for `database`."""

import sys

from hypothesis import HealthCheck, settings

sys.dont_write_bytecode = False  # rewritten tests are cached between runs, also where the environment caches nothing

pytest_plugins = [
    "tests.harness.servers",
    "tests.harness.costs",
    "tests.harness.prerequisites",
    "tests.harness.selection",
    "tests.harness.databases",
    "tests.harness.evidence",
    "tests.harness.product",
    "tests.harness.separate",
    "tests.harness.world",
]

# How fast a busy machine makes inputs says nothing about the code.
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")
