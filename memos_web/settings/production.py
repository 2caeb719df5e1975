"""Settings behind a TLS proxy, with the operator's own servers. Every secret comes from the environment, without
defaults.

The owner's process, which only migrates, needs only its own address and no key.
"""

from dataclasses import replace

from memos_web.address import address_settings, read_address
from memos_web.config import Config, ConfigError, bracket_host
from memos_web.installation import key_store_path
from memos_web.settings.base import *  # noqa: F403
from memos_web.settings.base import CONFIG
from memos_web.settings.databases import broker_settings, databases, redis_address


def _require_settings(config: Config) -> dict[str, object]:
    if config.database_role == "owner":
        return {"DATABASE_OWNER_URL": config.database_owner_url}
    return {
        "DATABASE_URL": config.database_url,
        "REDIS_URL": config.redis_url,
        "MEMOS_SECRET_KEY": config.secret_key,
        "MEMOS_MASTER_KEY": config.master_key,
        "MEMOS_ALLOWED_HOSTS": config.allowed_hosts,
    }


for _name, _value in _require_settings(CONFIG).items():
    if not _value:
        raise ConfigError(f"{_name} must be set in production")
if "*" in CONFIG.allowed_hosts:
    raise ConfigError("MEMOS_ALLOWED_HOSTS is '*': in production it must name the hosts")
if CONFIG.database_role != "owner" and not CONFIG.public_url.startswith("https://"):
    raise ConfigError("MEMOS_PUBLIC_URL must be set to the https:// address that people open")

DEBUG = False
SECRET_KEY = CONFIG.secret_key
ALLOWED_HOSTS = list(CONFIG.allowed_hosts)
CSRF_TRUSTED_ORIGINS = [f"https://{'*' if name.startswith('.') else ''}{name}" for name in CONFIG.allowed_hosts]
# Without an address of the app role the owner's counts as given: there is no embedded server here.
DATABASES = databases(replace(CONFIG, database_url=CONFIG.database_url or CONFIG.database_owner_url))
globals().update(broker_settings(CONFIG))
REDIS_ADDRESS = redis_address(CONFIG, 0)
DATA_DIR = CONFIG.data_dir
KEY_STORE_PATH = key_store_path(CONFIG)
KEY_STORE_URL = CONFIG.key_store_url
MASTER_KEY = CONFIG.master_key
PUBLIC_URL = CONFIG.public_url
PUBLIC_URL_IS_GIVEN = True
if PUBLIC_URL:  # the owner's process has none
    ALLOWED_HOSTS.append(bracket_host(read_address(PUBLIC_URL).hostname))
    globals().update(address_settings(PUBLIC_URL, SECRET_KEY))
    CSRF_TRUSTED_ORIGINS = [read_address(PUBLIC_URL).origin, *CSRF_TRUSTED_ORIGINS]

SECURE_SSL_REDIRECT = True
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SECURE_HSTS_SECONDS = 365 * 24 * 3600
SECURE_HSTS_INCLUDE_SUBDOMAINS = True
SECURE_HSTS_PRELOAD = True
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
if CONFIG.trusted_proxy:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
