"""One machine: the embedded PostgreSQL and Redis unless DATABASE_URL and REDIS_URL name others; plain HTTP."""

from memos_web.settings.base import *  # noqa: F403
from memos_web.settings.base import CONFIG
from memos_web.settings.databases import broker_address, databases, redis_address
from memos_web.settings.secrets import master_key, secret_key

DEBUG = False
SECRET_KEY = secret_key(CONFIG)
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]", CONFIG.host, *CONFIG.allowed_hosts]
DATABASES = databases(CONFIG)
CELERY_BROKER_URL = broker_address(CONFIG)
REDIS_ADDRESS = redis_address(CONFIG, 0)
DATA_DIR = CONFIG.data_dir
KEY_STORE_PATH = CONFIG.data_dir / "keys" / "keystore.sqlite3"
MASTER_KEY = master_key(CONFIG)
PUBLIC_URL = CONFIG.public_url
