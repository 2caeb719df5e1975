"""Starts the servers and the product in order, keeps them running, and stops them in reverse. One thread, no Django."""

import os
import signal
import sys
import time
from collections.abc import Callable

from memos_web.config import EVERYWHERE, Config
from memos_web.embedded import first_run, postgres, redis, serving
from memos_web.embedded.bootstrap import DATABASE, bootstrap, has_tenants
from memos_web.embedded.children import Child
from memos_web.embedded.errors import StartError, StopRequested
from memos_web.embedded.folders import bind_port, folder_empty, lock_data_dir, make_socket_dir, prepare_data_dir
from memos_web.embedded.health_check import HealthCheck
from memos_web.embedded.programs import Program, adopt_orphans, kill_orphans, last_line, stop_all
from memos_web.installation import address_write, secrets_make

STOP_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
WATCHED_SIGNALS = STOP_SIGNALS | {signal.SIGCHLD}
SERVER_START_SECONDS = 120.0  # PostgreSQL may have to replay its log after a crash
START_FAILURES = 5
# Together below the ten seconds within which everything has ended.
PRODUCT_STOP_SECONDS = 5.0
SERVER_STOP_SECONDS = {"redis": 1.5, "postgres": 2.5}


def supervise(config: Config) -> None:
    """Serve until SIGINT, SIGTERM or SIGHUP. Raises StartError when the start fails; nothing is left running then."""
    # Blocked, a signal waits until we ask for it: none can fall between the start of a child and its registration.
    signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED_SIGNALS)
    os.umask(0o077)  # whatever any child writes is its own
    supervisor = Supervisor(config)
    try:
        supervisor.start()
        supervisor.watch()
    except StopRequested:
        say("stopping")
    finally:
        supervisor.stop()


def say(line: str) -> None:
    """One event, one line."""
    sys.stderr.write(f"memos: {line}\n")
    sys.stderr.flush()


def pause(seconds: float) -> None:
    """Wait, but not past the end of a child. Raises StopRequested when somebody asked for it."""
    received = signal.sigtimedwait(WATCHED_SIGNALS, seconds)
    if received is not None and received.si_signo in STOP_SIGNALS:
        raise StopRequested


class Supervisor:
    """The processes of one data directory. `children` are in the order of their start."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.children: list[Child] = []
        self.postgres = postgres.of(config)
        self.redis = redis.of(config)
        self.made: first_run.FirstRun | None = None

    def start(self) -> None:
        """Everything up to the start of the product; the order is the promise."""
        self._check_given_servers()
        prepare_data_dir(self.config.data_dir)
        self.lock = lock_data_dir(self.config.data_dir)
        self.shared = bind_port(self.config)
        if notice := secrets_make(self.config):
            say(notice)
        address_write(self.config)
        adopt_orphans()
        self._start_servers()
        self._migrate()
        self._check_keys()
        self._write_first_run()
        if self.postgres is None and self.redis is None:  # either of them makes it otherwise
            make_socket_dir(self.config.socket_dir, None)
        folder_empty(serving.metrics_path(self.config))
        for number in range(1, self.config.web_processes + 1):
            self._add(Child(serving.web(self.config, number, self.shared), health=self._health_check(number)))
        for program in (serving.worker(self.config), serving.beat(self.config)):
            self._add(Child(program))

    def watch(self) -> None:
        """Restart what dies; say once when the product answers."""
        announced = False
        while True:
            pause(1.0 if announced else 0.25)
            self._tend()
            if not announced and serving.is_ready(self.config):
                announced = True
                self._announce()

    def stop(self) -> None:
        """End all, the product first and together; kill what does not end in time."""
        product = [child for child in self.children if child.program.name not in SERVER_STOP_SECONDS]
        stop_all([child.started for child in reversed(product) if child.started], seconds=PRODUCT_STOP_SECONDS)
        for name, seconds in SERVER_STOP_SECONDS.items():
            servers = [child.started for child in self.children if child.program.name == name and child.started]
            stop_all(servers, seconds=seconds)
        kill_orphans(known=())

    def _add(self, child: Child) -> None:
        self.children.append(child)
        child.start()

    def _health_check(self, number: int) -> HealthCheck:
        return HealthCheck(serving.health_path(self.config, number))

    def _tend(self) -> None:
        for child in self.children:
            if child.is_silent():
                say(f"{child.program.name} does not answer: it is replaced")
                child.kill()
            if child.process is not None and not child.running:
                say(child.note_death())
            if child.process is None and time.monotonic() >= child.restart_at:
                child.before_restart()
                child.start()

    def _check_given_servers(self) -> None:
        if self.config.database_url or self.config.redis_url:
            from memos_web.embedded.external import check_given  # only then: it costs the memory of a Redis client

            check_given(self.config)

    def _start_servers(self) -> None:
        if self.postgres is not None:
            say("starting PostgreSQL")
            postgres.prepare(self.postgres)
            self._add(Child(postgres.program(self.postgres), self._clear_after_postgres))
        if self.redis is not None:
            say("starting Redis")
            redis.prepare(self.redis)
            self._add(Child(redis.program(self.redis)))
        if (cache := self.redis) is not None:
            self._wait_until(lambda: redis.answers(cache), "redis")
        if (server := self.postgres) is not None:
            self._wait_until(lambda: postgres.answers(server), "postgres")
            bootstrap(server=server.conninfo(), database=server.conninfo(database=DATABASE))

    def _clear_after_postgres(self) -> None:
        """The sessions of a killed PostgreSQL still hold its shared memory; a new server waits for them to leave."""
        kill_orphans(known=[child.process.pid for child in self.children if child.process is not None])
        if self.postgres is not None:
            postgres.leave_no_stale_lock(self.postgres)

    def _wait_until(self, done: Callable[[], bool], name: str) -> None:
        child = next(child for child in self.children if child.program.name == name)
        deadline = time.monotonic() + SERVER_START_SECONDS
        while not done():
            if child.failures >= START_FAILURES or time.monotonic() > deadline:
                raise StartError(f"{name} does not start: {last_line(child.program.log)}")
            pause(0.05)
            self._tend()

    def _migrate(self) -> None:
        if self.config.database_url and not self.config.database_owner_url:
            if self._run(serving.command(self.config, "migrate", "--check", "--noinput", "--verbosity", "0")) is None:
                raise StartError("migrations are missing: run `manage.py migrate` with DATABASE_OWNER_URL set")
            return
        say("migrating")
        program = serving.command(self.config, "migrate", "--noinput", environ=serving.owner_environ(self.config))
        if self._run(program) is None:
            raise StartError(f"migrating failed: {last_line(program.log)}; see {program.log}")

    def _check_keys(self) -> None:
        program = serving.keys_check(self.config)
        if self._run(program) is None:
            raise StartError(f"{last_line(program.log)} Folder: {self.config.data_dir / 'keys'}")

    def _write_first_run(self) -> None:
        path = self.config.data_dir / "first-run.json"
        if path.exists() or (self.postgres is not None and has_tenants(self.postgres.conninfo(database=DATABASE))):
            return
        say("making the first tenant")
        program = serving.command(self.config, *first_run.TENANT_CREATE)
        answer = self._run(program)
        if answer is None:
            say(f"no first tenant was made: {last_line(program.log)}")
            return
        self.made = first_run.parse(answer, url=self.config.address)
        first_run.write(self.made, path)

    def _run(self, program: Program) -> str | None:
        """Run a short command while the servers are watched. Its stdout, or None when it failed."""
        step = Child(program, capture=True)
        self._add(step)
        while step.running:
            pause(0.05)
            for child in self.children:
                if child is not step and child.process is not None and not child.running:
                    raise StartError(f"{child.program.name} ended during the start; see {child.program.log}")
        self.children.remove(step)
        return step.output() if step.succeeded else None

    def _announce(self) -> None:
        lines = [f"MemOS Web is at {self.config.address}"]
        if self.made is not None:
            kept = self.config.data_dir / "first-run.json"
            shown = f"shown once, also in {kept}): {self.made.api_key}" if sys.stdout.isatty() else f"in {kept})"
            lines += [f"Sign in (once, as {self.made.email}): {self.made.sign_in_link}", f"API key ({shown}"]
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()
        if self.config.host in EVERYWHERE and not self.config.allowed_hosts:
            say("other machines reach it, and are refused: name the host names to answer to in MEMOS_ALLOWED_HOSTS")
