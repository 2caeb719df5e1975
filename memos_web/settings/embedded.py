"""Settings of one machine: embedded PostgreSQL and Redis unless DATABASE_URL and REDIS_URL name others; plain HTTP."""

from memos_web.address import address_settings, read_address
from memos_web.config import bracket_host, refuse_lone_owner
from memos_web.installation import key_store_path, master_key, missing, public_url, secret_key
from memos_web.settings.base import *  # noqa: F403
from memos_web.settings.base import CONFIG
from memos_web.settings.databases import broker_settings, databases, redis_address

refuse_lone_owner(CONFIG)

DEBUG = False
NO_INSTALLATION = missing(CONFIG)
SECRET_KEY = secret_key(CONFIG)
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]", bracket_host(CONFIG.host), *CONFIG.allowed_hosts]
DATABASES = databases(CONFIG)
globals().update(broker_settings(CONFIG))
REDIS_ADDRESS = redis_address(CONFIG, 0)
DATA_DIR = CONFIG.data_dir
KEY_STORE_PATH = key_store_path(CONFIG)
KEY_STORE_URL = CONFIG.key_store_url
MASTER_KEY = master_key(CONFIG)
PUBLIC_URL = public_url(CONFIG)
PUBLIC_URL_IS_GIVEN = bool(CONFIG.public_url)
ALLOWED_HOSTS.append(bracket_host(read_address(PUBLIC_URL).hostname))
globals().update(address_settings(PUBLIC_URL, SECRET_KEY))
if CONFIG.trusted_proxy:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
