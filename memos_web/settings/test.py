"""Settings of the tests: nothing comes from the shell's environment, and the harness provides the database of each
test."""

import os
from pathlib import Path

for _name in [name for name in os.environ if name.startswith("MEMOS_") or name in {"DATABASE_URL", "REDIS_URL"}]:
    del os.environ[_name]
os.environ["MEMOS_EMBEDDER"] = "hashing"

from memos_web.address import address_settings  # noqa: E402
from memos_web.settings.base import *  # noqa: E402, F403
from memos_web.settings.base import CONFIG  # noqa: E402
from memos_web.settings.databases import BROKER_OPTIONS, databases  # noqa: E402

DEBUG = False
SECRET_KEY = "of the tests"
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "testserver"]
MASTER_KEY = b"the master key of all the tests."
PUBLIC_URL = "http://testserver"
EMAIL_HOST = "mail.invalid"  # as an installation with a mail server; the test runner keeps the mails
globals().update(address_settings(PUBLIC_URL, SECRET_KEY))
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

# Non-existing servers and folders, so that a test without fixtures reaches no server and writes no file.
DATABASES = databases(CONFIG)
DATABASES["default"]["HOST"] = "/nonexistent"
del DATABASES["default"]["OPTIONS"]["pool"]  # every test has a database of its own, which a pool would keep open
DATA_DIR = Path("/nonexistent")
KEY_STORE_URL = ""
KEY_STORE_PATH = Path("/nonexistent/keystore.sqlite3")
CELERY_BROKER_URL = "redis+socket:///nonexistent/redis.sock?virtual_host=0"
CELERY_BROKER_TRANSPORT_OPTIONS = BROKER_OPTIONS
REDIS_ADDRESS = "unix:///nonexistent/redis.sock?db=0"
WEB_PROCESSES = 1
WHITENOISE_AUTOREFRESH = True  # each client of a test loads the middleware anew: no scan of all static files each time
