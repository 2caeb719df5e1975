"""The web server's entry: refuses to serve as a database role that could see more than one tenant."""

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memos_web.settings.embedded")

import django

django.setup(set_prefix=False)

from django.db import connection
from starlette.types import ASGIApp

from governance.collector import collect_seldom
from governance.errors import Unavailable
from governance.keys.services import key_store
from governance.tenants.role_check import UnsafeRole
from governance.tenants.startup_check import refuse_unsafe_role
from memos_web.fellows import join_fellows
from memos_web.handler import ThreadedHandler
from memos_web.mcp.app import WithMcp
from memos_web.mem0.app import MEM0
from memos_web.product.app import PRODUCT
from memos_web.protocols import WithProtocol
from memos_web.proxy import AtAddress, refuse_page_path
from memos_web.telemetry import telemetry_start
from vault.providers.ports import ProviderUnavailable
from vault.providers.registry import llm
from vault.retrieval.preload import load_models

django_application = ThreadedHandler()
application: ASGIApp = WithMcp(django_application)
for protocol in (MEM0, PRODUCT):
    application = WithProtocol(protocol, application, api=django_application)
application = AtAddress(application)

WARM_UP_SECONDS = 0.2  # after the import; by then the server listens

# Python lets a thread run for 5 ms before another's turn; a request waits so long after each statement.
SWITCH_SECONDS = 0.001


def _prepare() -> None:
    try:
        refuse_page_path()
        refuse_unsafe_role()
        key_store().check()
        join_fellows()
    finally:
        connection.close()
    telemetry_start()


def _warm_up() -> None:
    """Load models beside the first requests. A search that needs one before waits for it."""
    load_models()
    with suppress(ProviderUnavailable):  # what a model lacks is said where it is asked
        llm()


try:
    # The server imports this module inside its event loop, where Django lets nobody wait for a database.
    ThreadPoolExecutor(max_workers=1).submit(_prepare).result()
except (Unavailable, UnsafeRole) as error:
    raise SystemExit(f"memos: {error}") from error

collect_seldom()
sys.setswitchinterval(SWITCH_SECONDS)
_warming = threading.Timer(WARM_UP_SECONDS, _warm_up)
_warming.daemon = True
_warming.start()
