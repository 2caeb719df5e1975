"""Behind a TLS proxy, against servers of their own. Every secret comes from the environment; nothing is guessed."""

from memos_web.config import ConfigError
from memos_web.settings.base import *  # noqa: F403
from memos_web.settings.base import CONFIG
from memos_web.settings.databases import broker_address, databases, redis_address

for _name, _value in {
    "DATABASE_URL": CONFIG.database_url,
    "REDIS_URL": CONFIG.redis_url,
    "MEMOS_SECRET_KEY": CONFIG.secret_key,
    "MEMOS_MASTER_KEY": CONFIG.master_key,
    "MEMOS_ALLOWED_HOSTS": CONFIG.allowed_hosts,
}.items():
    if not _value:
        raise ConfigError(f"{_name} must be set in production")

DEBUG = False
SECRET_KEY = CONFIG.secret_key
ALLOWED_HOSTS = list(CONFIG.allowed_hosts)
CSRF_TRUSTED_ORIGINS = [f"https://{name}" for name in CONFIG.allowed_hosts]
DATABASES = databases(CONFIG)
CELERY_BROKER_URL = broker_address(CONFIG)
REDIS_ADDRESS = redis_address(CONFIG, 0)
KEY_STORE_PATH = CONFIG.data_dir / "keys" / "keystore.sqlite3"
MASTER_KEY = CONFIG.master_key
PUBLIC_URL = CONFIG.public_url

SECURE_SSL_REDIRECT = True
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SECURE_HSTS_SECONDS = 365 * 24 * 3600
SECURE_HSTS_INCLUDE_SUBDOMAINS = True
SECURE_HSTS_PRELOAD = True
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
if CONFIG.trusted_proxy:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
