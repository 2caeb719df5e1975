"""Settings that all installations share, by topic. embedded.py, production.py and test.py add the others."""

import os
from pathlib import Path
from typing import Any

from governance.vocabulary import (
    Action,
    Effect,
    ExportFormat,
    GranteeKind,
    JobStatus,
    Outcome,
    PersonaKind,
    PolicyKind,
    PrincipalKind,
    QuotaTargetKind,
    RoleName,
    SinkKind,
    Weight,
)
from memos_web import logs
from memos_web.config import read_config
from vault.vocabulary import (
    ContractState,
    FeedbackKind,
    Layer,
    LinkKind,
    MemoryType,
    NamespaceKind,
    ProposalState,
    ReportReason,
    ReviewStatus,
    SemanticType,
    Sensitivity,
    State,
    SubjectStatus,
    ToolOutcome,
)

# Before numpy is loaded: with threads that wait for each other, the vector of a question takes 100 ms instead of 2 on a
# busy machine.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

CONFIG = read_config(os.environ)
BASE_DIR = Path(__file__).resolve().parents[2]
NO_INSTALLATION = ""  # the reason why commands cannot run yet; empty if they can

# Applications
INSTALLED_APPS = [
    "memos_web",
    "governance",
    "vault",
    "django.contrib.admin.apps.SimpleAdminConfig",  # operators' own site: governance.admin
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "allauth",
    "allauth.account",  # required by the other two; its tables stay empty
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "guardian",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_celery_beat",  # the installation's own periodic tasks; tenants' schedules are governance.Schedule
]
MIDDLEWARE = [
    "memos_web.metrics.MetricsMiddleware",
    "governance.web.middleware.RequestIdMiddleware",
    "memos_web.health.ProbeMiddleware",
    "django_htmx.middleware.HtmxMiddleware",  # first, since errors of later middleware are pages or parts of pages
    "django.middleware.security.SecurityMiddleware",
    "governance.web.middleware.ContentSecurityPolicyMiddleware",
    "governance.web.static_files.StaticFilesMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "governance.web.middleware.LanguageMiddleware",
    "governance.api.errors.BodyRefusalMiddleware",
    "governance.web.middleware.SlashMiddleware",
    "governance.web.middleware.OnlyPostMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "governance.web.middleware.UnchangedMiddleware",
]
ROOT_URLCONF = "memos_web.urls"
ASGI_APPLICATION = "memos_web.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# People
AUTH_USER_MODEL = "governance.User"
# Answers `user.has_perm` by the policy engine. Only governance.accounts signs people in.
AUTHENTICATION_BACKENDS = ["governance.tenants.permission_backend.EngineBackend"]
SILENCED_SYSTEM_CHECKS = [
    "auth.W004",  # e-mail is unique, without regard to case, by a constraint
    # The admin stands behind the product's own sign-in, and says nothing by messages.
    *(f"admin.E{number}" for number in (402, 404, 406, 408, 409)),
    "guardian.W001",  # permission is asked of governance.access.decisions, never of a backend
]
ANONYMOUS_USER_NAME = None  # guardian's: nobody is anonymous here
GUARDIAN_MONKEY_PATCH_USER = False
GUARDIAN_MONKEY_PATCH_GROUP = False
SESSION_ENGINE = "governance.web.session_store"
SESSION_COOKIE_AGE = 14 * 24 * 3600
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_FAILURE_VIEW = "governance.api.errors.answer_csrf_failure"
SIGN_IN_LINK_HOURS = 24
INVITATION_HOURS = 7 * 24
PASSWORD_RESET_HOURS = 1
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.ScryptPasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "CommonPasswordValidator", "NumericPasswordValidator")
] + [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    }
]
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*"]
MFA_ADAPTER = "governance.accounts.allauth_adapters.SealedFactors"
MFA_TOTP_ISSUER = "MemOS Web"
MFA_TOTP_TOLERANCE = 1  # steps of 30 seconds, either way
SOCIALACCOUNT_ADAPTER = "governance.accounts.allauth_adapters.TenantProviders"

# Guessing: after so many free tries, each further try waits twice as long as the one before
ATTEMPTS_FREE = 5
ATTEMPTS_FREE_BY_ADDRESS = 50  # of one IPv4 address or IPv6 /64, for all accounts together
ATTEMPTS_FREE_BY_ACCOUNT = 20  # from all addresses together
ATTEMPTS_FREE_BY_KEY = 10  # wrong secrets of one API key from one address
ATTEMPTS_FIRST_WAIT_SECONDS = 30
ATTEMPTS_LONGEST_WAIT_SECONDS = 3600

# API keys
KEY_OVERLAP_SECONDS = 24 * 3600  # how long a rotated key's former secret works, unless asked otherwise
KEY_LONGEST_OVERLAP_SECONDS = 30 * 24 * 3600
KEY_LAST_USE_SECONDS = 60  # a key's last use is noted once in this time, and written by beat within four minutes more
KEY_REQUESTS_DAYS = 7  # a logged request of a key is kept for so long
KEY_REQUESTS_MOST = 2_000  # logged requests of one key
KEY_REQUESTS_MOST_OF_TENANT = 50_000
KEY_DAYS_DAYS = 90  # the counts of a key's requests by day

# Mail and other outgoing calls. Private addresses are refused unless the operator allows them.
EMAIL_BACKEND = CONFIG.mail.backend
EMAIL_HOST = CONFIG.mail.host
EMAIL_PORT = CONFIG.mail.port
EMAIL_HOST_USER = CONFIG.mail.user
EMAIL_HOST_PASSWORD = CONFIG.mail.password
EMAIL_USE_TLS = CONFIG.mail.starttls
EMAIL_USE_SSL = CONFIG.mail.tls
EMAIL_TIMEOUT = 10
EMAIL_FILE_PATH = CONFIG.data_dir / "mail"
DEFAULT_FROM_EMAIL = CONFIG.mail.sender
ALLOW_PRIVATE_ADDRESSES = CONFIG.allow_private_addresses

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
                "governance.web.context.page_frame",
            ],
        },
    }
]
PUBLIC_URL_IS_GIVEN = False  # the address is the one that the server listens on
INSTALLATION_TAG = ""  # in the names of cookies; see memos_web.address
WHITENOISE_STATIC_PREFIX = "/static/"  # below the path of the public address
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True  # nothing to collect: files are served from the packages
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CONTENT_TYPE_NOSNIFF = True

# Languages and time
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LANGUAGE_CODE = "en"
LOCALE_PATHS = [BASE_DIR / "locale"]
FORMAT_MODULE_PATH = "memos_web.formats"
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
    "URL_FORMAT_OVERRIDE": None,  # the kind of a reply follows from Accept alone
    "UNAUTHENTICATED_TOKEN": None,
    "ALLOWED_VERSIONS": [""],  # the only version of the API document, for `?version=`
}
SPECTACULAR_SETTINGS = {
    "TITLE": "MemOS Web",
    "DESCRIPTION": (BASE_DIR / "vault" / "api" / "manual.md").read_text(encoding="utf-8"),
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SERVE_AUTHENTICATION": [],
    "SCHEMA_PATH_PREFIX": "/api/v1",
    # A list of choices has the name of its elements.
    "ENUM_NAME_OVERRIDES": {
        "LayerEnum": [(layer.value, layer.value) for layer in Layer],
        "StateEnum": [(state.value, state.value) for state in State],
        "RoleEnum": [(role.value, role.value) for role in RoleName],
        "TypeEnum": [(kind.value, kind.value) for kind in MemoryType],
        "FormKindEnum": [(kind.value, kind.value) for kind in (MemoryType.ACTIVATION, MemoryType.PARAMETER)],
        "JobStatusEnum": [(status.value, status.value) for status in JobStatus],
        "SubjectStatusEnum": [(status.value, status.value) for status in SubjectStatus],
        "ReviewStatusEnum": [(status.value, status.value) for status in ReviewStatus],
        "PrincipalKindEnum": [(kind.value, kind.value) for kind in PrincipalKind],
        "LinkKindEnum": [(kind.value, kind.value) for kind in LinkKind],
        "RelationKindEnum": [(kind, kind) for kind in ("follows", "causes", "contradicts")],
        "NamespaceKindEnum": [(kind.value, kind.value) for kind in NamespaceKind],
        "SinkKindEnum": [(kind.value, kind.value) for kind in SinkKind],
        "HolderKindEnum": [(kind.value, kind.value) for kind in QuotaTargetKind],
        "ExportFormatEnum": [(form.value, form.value) for form in ExportFormat],
        "AuditOutcomeEnum": [(outcome.value, outcome.value) for outcome in Outcome],
        "ToolOutcomeEnum": [(outcome.value, outcome.value) for outcome in ToolOutcome],
        "FeedbackKindEnum": [(kind.value, kind.value) for kind in FeedbackKind],
        "ActionEnum": [(action.value, action.value) for action in Action],
        "GrantEffectEnum": [(effect.value, effect.value) for effect in Effect],
        "ReportReasonEnum": [(reason.value, reason.value) for reason in ReportReason],
        "ContractStateEnum": [(state.value, state.value) for state in ContractState],
        "ProposalStateEnum": [(state.value, state.value) for state in ProposalState],
        "PolicyKindEnum": [(kind.value, kind.value) for kind in PolicyKind],
        "GranteeKindEnum": [(kind.value, kind.value) for kind in GranteeKind],
        "AskedAboutEnum": [(kind, kind) for kind in [*map(str, GranteeKind), "system"]],
        "PersonaKindEnum": [(kind.value, kind.value) for kind in PersonaKind],
        "PresetKindEnum": [(kind, kind) for kind in ("member", "persona", "api_key")],
        "PresetRoleEnum": [(role.value, role.value) for role in RoleName if role is not RoleName.OWNER],
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "vault.api.examples.examples_add",
        "vault.api.examples.list_bounds_add",
    ],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}

# Bodies of requests, in bytes. All of a body is in memory; nothing of a request is written to a file.
BODY_BYTES_UNAUTHENTICATED = 64 * 1024  # without a valid API key or session
BODY_BYTES = 1024 * 1024  # one memory of 32,000 characters fits, in its longest encoding, with its metadata
BODY_BYTES_BULK = 64 * 1024 * 1024  # views that set longest_body: 1,000 memories of 32,000 two-byte characters fit
DATA_UPLOAD_MAX_MEMORY_SIZE = BODY_BYTES_BULK
FILE_UPLOAD_MAX_MEMORY_SIZE = BODY_BYTES_BULK
FILE_UPLOAD_HANDLERS = ["django.core.files.uploadhandler.MemoryFileUploadHandler"]

# Memory: all limits of the API
MAX_CONTENT_CHARACTERS = 32_000
MAX_METADATA_BYTES = 128 * 1024  # a memory with its metadata fits in BODY_BYTES
MAX_ITEMS_PER_CALL = 1_000
MAX_TOP_K = 100
MAX_PAGE_SIZE = 200
DELETED_GRACE_DAYS = 30
TENANT_GRACE_DAYS = 7  # between the request to delete an organisation and its deletion
PIPELINE_CACHE_SECONDS = 24 * 3600  # unless an entry says otherwise
SESSION_IDLE_HOURS = 24  # then its context pool ends
STREAM_IDLE_MINUTES = 30  # then what a conversation told is distilled
IDEMPOTENCY_HOURS = 24

# Personal data
PII_DETECTOR = "governance.privacy.pii.detector.PatternDetector"  # takes the regions; see its port, Detector
PII_PHONE_REGIONS = CONFIG.phone_regions
PII_ACTION = "flag"  # where no policy says otherwise

# The audit log
AUDIT_CHECKPOINT_SECONDS = 60  # a checkpoint is signed so long after the last, if there are new seals
AUDIT_CHECKPOINT_SEALS = 10_000  # or as soon as there are so many
AUDIT_EXPORT_DAYS = 7  # how long the file of an export is kept

# Backups
METRICS_TOKEN = CONFIG.metrics_token
BACKUP_DAYS = CONFIG.backup_days  # days for which the operator keeps backups; receipts of erasures state it

# Health
DISK_LEAST_FREE_BYTES = 100 * 1024 * 1024  # with less free space the product is not ready

# Policies: enumerations of the product, which governance does not import
POLICY_TERMS = {
    "types": [*MemoryType],
    "semantic_types": [*SemanticType],
    "sensitivities": [*Sensitivity],
}
POLICY_SIMULATED_DAYS = 30
HEAVY_CALLS = 2  # of one tenant at once, over all web processes
WEB_PROCESSES = CONFIG.web_processes  # without Redis, each process counts its share of the tries
RATE_SECONDS = 0.2  # how long a request waits for Redis to count it

# Jobs
OUTBOX_LEASE_SECONDS = 60
# Concurrent tasks by weight: (for each worker, of one tenant in all of them).
JOB_SLOTS = {Weight.INTERACTIVE: (4, 2), Weight.BACKGROUND: (2, 1), Weight.HEAVY: (3, 1)}
CELERY_WORKER_CONCURRENCY = 1  # threads: memos_web.celery raises it to the slots of the worker's queues
CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"
CELERY_TASK_QUEUES: dict[str, dict[str, str]] = {weight.value: {} for weight in Weight}
CELERY_TASK_DEFAULT_QUEUE = Weight.BACKGROUND.value
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True

# Logs: requests and failures, never bodies, headers or content
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"chosen": logs.formatter(CONFIG.log_format)},
    "filters": {
        "links": {"()": "governance.web.log_filter.WithoutLinks"},
        "hosts": {"()": "governance.web.log_filter.HostInOneLine"},
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "chosen", "filters": ["links"]}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        "django.security.DisallowedHost": {"filters": ["hosts"]},
        # One line for each request and job: for programs that read them.
        "memos_web.requests": {"level": "INFO" if CONFIG.log_format == "json" else "WARNING"},
        "governance.jobs": {"level": "INFO" if CONFIG.log_format == "json" else "WARNING"},
        # Handlers of its own would write lines of another format.
        "uvicorn": {"level": "INFO", "handlers": [], "propagate": True},
        "uvicorn.access": {"level": "CRITICAL", "handlers": [], "propagate": False},  # addresses with their queries
        "httpx2": {"level": "WARNING"},
        "mcp": {"level": "WARNING"},  # at INFO it logs the arguments of tools
        "celery.app.trace": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
        "psycopg.pool": {"level": "ERROR"},  # it logs every failed connection
    },
}

# Providers
MEMOS_LLM = CONFIG.llm
MEMOS_EMBEDDER = CONFIG.embedder
MEMOS_RERANKER = CONFIG.reranker
MEMOS_SEARCH_WEIGHTS = CONFIG.search_weights
MEMOS_BLOB_STORE = CONFIG.blob_store
MEMOS_VECTOR_INDEX = CONFIG.vector_index
