"""Settings that every installation shares, by topic. What differs: embedded.py, production.py, test.py."""

import os
from pathlib import Path
from typing import Any

from governance.vocabulary import HolderKind, PersonaKind, RoleName
from memos_web.config import read_config
from vault.vocabulary import Layer, MemoryType

CONFIG = read_config(os.environ)
BASE_DIR = Path(__file__).resolve().parents[2]

# Applications
INSTALLED_APPS = [
    "memos_web",
    "governance",
    "vault",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "guardian",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
]
MIDDLEWARE = [
    "governance.web.middleware.RequestIdMiddleware",
    "django_htmx.middleware.HtmxMiddleware",  # before whatever may refuse: a refusal is a page or a part of one
    "django.middleware.security.SecurityMiddleware",
    "governance.web.middleware.ContentSecurityPolicyMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "memos_web.urls"
ASGI_APPLICATION = "memos_web.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# People
AUTH_USER_MODEL = "governance.User"
AUTHENTICATION_BACKENDS: list[str] = []  # governance.tenants signs people in; nothing else may
SILENCED_SYSTEM_CHECKS = [
    "auth.W004",  # e-mail is unique, without regard to case, by a constraint
    "guardian.W001",  # permission is asked of governance.authz, never of a backend
]
ANONYMOUS_USER_NAME = None  # guardian's: nobody is anonymous here
GUARDIAN_MONKEY_PATCH_USER = False
GUARDIAN_MONKEY_PATCH_GROUP = False
SESSION_ENGINE = "governance.web.session_store"
SESSION_COOKIE_AGE = 14 * 24 * 3600
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"
SIGN_IN_LINK_HOURS = 24

# Pages
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "governance.web.context.signed_in",
            ],
        },
    }
]
STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True  # nothing to collect: files are served from the packages
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CONTENT_TYPE_NOSNIFF = True

# Languages and time
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LANGUAGE_CODE = "en"
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"

# REST
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "governance.api.authentication.BearerKey",
        "governance.api.authentication.Session",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["governance.api.authentication.IsActor"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "governance.api.problems.problem_response",
    "UNAUTHENTICATED_USER": None,
    "UNAUTHENTICATED_TOKEN": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "MemOS Web",
    "DESCRIPTION": "Governed memory for AI agents.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SERVE_AUTHENTICATION": [],
    "SCHEMA_PATH_PREFIX": "/api/v1",
    # A list of choices has the name of its elements.
    "ENUM_NAME_OVERRIDES": {
        "LayerEnum": [(layer.value, layer.value) for layer in Layer],
        "TypeEnum": [(kind.value, kind.value) for kind in MemoryType],
        "HolderKindEnum": [(kind.value, kind.value) for kind in HolderKind],
        "AskedAboutEnum": [(kind, kind) for kind in [*map(str, HolderKind), "system"]],
        "PersonaKindEnum": [(kind.value, kind.value) for kind in PersonaKind],
        "PresetKindEnum": [(kind, kind) for kind in ("member", "persona", "api_key")],
        "PresetRoleEnum": [(role.value, role.value) for role in RoleName if role is not RoleName.OWNER],
    },
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}
DATA_UPLOAD_MAX_MEMORY_SIZE = 64 * 1024 * 1024  # 1,000 memories of 32,000 characters, in their longest encoding, fit

# Memory: every limit of the contract, in one place
MAX_CONTENT_CHARACTERS = 32_000
MAX_METADATA_BYTES = 16 * 1024
MAX_ITEMS_PER_CALL = 1_000
MAX_TOP_K = 100
MAX_PAGE_SIZE = 200
DELETED_GRACE_DAYS = 30
IDEMPOTENCY_HOURS = 24

# Jobs
OUTBOX_LEASE_SECONDS = 60
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 3600,
    "socket_timeout": 5,
    "socket_connect_timeout": 0.5,
}

# Logs: requests and failures, never bodies, headers or content
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "filters": {"links": {"()": "governance.web.log_filter.WithoutLinks"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["links"]}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        "httpx2": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
        "psycopg.pool": {"level": "ERROR"},  # it tells of every try to reach a database that is down
    },
}

# Providers
MEMOS_LLM = CONFIG.llm
MEMOS_EMBEDDER = CONFIG.embedder
MEMOS_RERANKER = CONFIG.reranker
