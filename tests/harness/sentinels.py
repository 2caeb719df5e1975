"""A primary, a replica and three sentinels on this machine, as Redis and Valkey run them on three."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import redis as redis_client

from memos_web.embedded import redis
from memos_web.embedded.account import give, server_account
from memos_web.embedded.programs import Program, spawn, stop_all
from memos_web.embedded.redis import Redis
from tests.harness.product import free_port, wait_until

PASSWORD = "not-a-secret"
SERVICE = "memos"
DOWN_AFTER_MS = 500


@dataclass
class Watched:
    """The running servers by their ports, and the ports of their sentinels."""

    folder: Path
    primary: int
    replica: int
    sentinels: list[int]
    running: dict[int, tuple[Program, subprocess.Popen[bytes]]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.sentinels)
        return f"sentinel://:{PASSWORD}@{hosts}/{SERVICE}"

    def kill(self, port: int) -> None:
        _, process = self.running.pop(port)
        process.kill()
        process.wait()

    def start_server(self, port: int, *more: str) -> None:
        folder = self.folder / str(port)
        log = self.folder / f"{port}.log"
        server = Redis(folder, self.folder, log, server_account(), tcp_port=port, password=PASSWORD)
        redis.prepare(server)
        program = redis.program(server)
        own = ("--masterauth", PASSWORD, "--repl-diskless-sync-delay", "0")
        self._start(port, replace(program, argv=(*program.argv, *own, *more)))
        wait_until(lambda: redis.answers(server), seconds=10, why=lambda: log.read_text(encoding="utf-8"))

    def start_sentinel(self, port: int) -> None:
        account, path = server_account(), self.folder / f"sentinel-{port}.conf"
        path.write_text(
            f"bind 127.0.0.1\nport {port}\ndir {self.folder}\n"
            f"sentinel monitor {SERVICE} 127.0.0.1 {self.primary} 2\n"
            f"sentinel auth-pass {SERVICE} {PASSWORD}\n"
            f"sentinel down-after-milliseconds {SERVICE} {DOWN_AFTER_MS}\n"
            f"sentinel failover-timeout {SERVICE} 4000\n"
        )
        give(path, account)
        argv = (redis.program(Redis(self.folder, self.folder, path, account)).argv[0], str(path), "--sentinel")
        self._start(port, Program(f"sentinel {port}", argv, self.folder / f"{port}.log", {}, account=account))

    def knows_all(self) -> bool:
        """Return whether the replica has all data, and each sentinel has found it and both others."""
        with redis_client.Redis(port=self.replica, password=PASSWORD) as client:
            if client.info("replication")["master_link_status"] != "up":
                return False
        found = []
        for port in self.sentinels:
            with redis_client.Redis(port=port) as client:
                try:
                    state = client.sentinel_master(SERVICE)
                except redis_client.RedisError:
                    return False
            found.append((int(state["num-slaves"]), int(state["num-other-sentinels"])))
        return found == [(1, 2)] * 3

    def report(self) -> str:
        return "\n".join(path.read_text(errors="replace")[-1500:] for path in sorted(self.folder.glob("*.log")))

    def _start(self, port: int, program: Program) -> None:
        self.running[port] = (program, spawn(program))


@contextmanager
def sentinels_running(folder: Path) -> Iterator[Watched]:
    give(folder, server_account())
    watched = Watched(folder, free_port(), free_port(), [free_port() for _ in range(3)])
    try:
        watched.start_server(watched.primary)
        watched.start_server(watched.replica, "--replicaof", f"127.0.0.1 {watched.primary}")
        for port in watched.sentinels:
            watched.start_sentinel(port)
        wait_until(watched.knows_all, seconds=20, why=watched.report)
        yield watched
    finally:
        stop_all(list(watched.running.values()), seconds=5)
