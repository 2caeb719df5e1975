"""The benchmark's REST client."""

import socket
import threading

import pytest

from benchmarks import client
from benchmarks.client import Client, Target

ANSWER = b'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"ok"'


def test_a_connection_that_the_server_ended_while_it_was_idle_is_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "IDLE_SECONDS", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer_and_close() -> None:
            for _ in range(2):
                connection, _ = server.accept()
                with connection:
                    connection.recv(65_536)
                    connection.sendall(ANSWER)

        thread = threading.Thread(target=answer_and_close, daemon=True)
        thread.start()
        caller = Client(Target(url=f"http://127.0.0.1:{server.getsockname()[1]}", api_key=""))
        assert [caller.call("GET", "me/"), caller.call("GET", "me/")] == ["ok", "ok"]
        caller.close()
        thread.join(5)
