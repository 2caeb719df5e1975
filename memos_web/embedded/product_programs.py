"""The product's own processes: web, worker, beat, and their launcher."""

import http.client
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from memos_web.config import Config
from memos_web.embedded.programs import Program

ROOT = Path(__file__).resolve().parents[2]
WORKER_NICENESS = 10  # people wait for the web processes
OWNER_ONLY = ("DATABASE_OWNER_URL", "DATABASE_BACKUP_URL", "DATABASE_RESTORE_URL", "MEMOS_DATABASE_ROLE")


def launcher(config: Config, shared: int, channel: int) -> Program:
    """Return the program that prepares the installation and forks `programs`. shared, channel: its open descriptors."""
    argv = ["-m", "memos_web.embedded.launcher", str(shared), str(channel), str(config.data_dir)]
    return replace(_python(config, "launcher", argv, web_environ(config)), descriptors=(shared, channel))


def programs(config: Config, shared: int) -> list[Program]:
    """Return all serving programs, in the order of their start."""
    numbers = range(1, config.web_processes + 1)
    return [*(web(config, number, shared) for number in numbers), worker(config), beat(config)]


def web(config: Config, number: int, shared: int) -> Program:
    """Return the `number`-th web process, from 1. shared: descriptor of the socket that all of them serve."""
    argv = ["-m", "memos_web.embedded.web_process", str(shared), str(health_path(config, number))]
    program = _python(config, "web" if number == 1 else f"web-{number}", argv, web_environ(config))
    return replace(program, descriptors=(shared,), health=health_path(config, number))


def health_path(config: Config, number: int) -> Path:
    """Return the socket on which the `number`-th web process answers its health check."""
    return config.socket_dir / f"web-{number}.sock"


def metrics_path(config: Config) -> Path:
    """Return the folder where the web processes store their counts for `/metrics`."""
    return config.data_dir / "run" / "metrics"


def worker(config: Config) -> Program:
    argv = ["-m", "celery", "-A", "memos_web", "worker", "-P", "threads", "-l", "INFO"]
    argv += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    return replace(_python(config, "worker", argv), niceness=WORKER_NICENESS)


def beat(config: Config) -> Program:
    return _python(config, "beat", ["-m", "celery", "-A", "memos_web", "beat", "--pidfile="])


def is_ready(config: Config) -> bool:
    """Return whether /readyz answers 200."""
    connection = http.client.HTTPConnection(config.local_host, config.port, timeout=2)
    try:
        connection.request("GET", "/readyz", headers={"Host": "localhost"})
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def command(config: Config, *words: str, environ: Mapping[str, str] | None = None) -> Program:
    """Return the program `manage.py …`, run as the app role unless `environ` says otherwise."""
    return _python(config, "manage", ["manage.py", *words], environ)


def owner_environ(config: Config) -> dict[str, str]:
    """Return the environment for the one command that may change tables."""
    given = {"DATABASE_OWNER_URL": config.database_owner_url} if config.database_owner_url else {}
    return {**app_environ(), **given, "MEMOS_DATABASE_ROLE": "owner"}


def web_environ(config: Config) -> dict[str, str]:
    """Return the environment of web processes, with a folder for counts if `/metrics` is enabled."""
    counting = {"PROMETHEUS_MULTIPROC_DIR": str(metrics_path(config))} if config.metrics_token else {}
    return {**app_environ(), **counting}


def app_environ() -> dict[str, str]:
    """Return the environment of child processes: that of this process without the owner's address."""
    environ = {name: value for name, value in os.environ.items() if name not in OWNER_ONLY}
    environ.setdefault("DJANGO_SETTINGS_MODULE", "memos_web.settings.embedded")
    environ.setdefault("PYTHONUNBUFFERED", "1")
    # Saves memory: malloc makes an arena per thread, and BLAS threads are idle here.
    environ.setdefault("MALLOC_ARENA_MAX", "2")
    environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    return environ


def _python(config: Config, name: str, argv: list[str], environ: Mapping[str, str] | None = None) -> Program:
    return Program(
        name=name,
        argv=(sys.executable, *argv),
        log=config.data_dir / "logs" / f"{name}.log",
        environ=environ or app_environ(),
        folder=ROOT,
    )
