"""Sends searches at a steady rate, whatever comes back, and prints how many got which status.

Run as `python tests/attacks/load.py HOST PORT KEY RATE SECONDS`: a process of its own, so that whoever measures beside
it waits for nothing here.
"""

import asyncio
import json
import sys
from collections import Counter

import httptools

WORDS = ("heron", "mill", "river", "otter", "harbour", "winter", "bridge", "letter", "garden", "storm")
MOST_CONNECTIONS = 400


class Connection:
    """One kept-alive connection; a request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._is_complete = False

    def on_message_complete(self) -> None:
        self._is_complete = True

    async def ask(self, request: bytes) -> int:
        """The status. Raises OSError."""
        self._is_complete = False
        parser = httptools.HttpResponseParser(self)
        self._writer.write(request)
        while not self._is_complete:
            received = await self._reader.read(65536)
            if not received:
                raise ConnectionResetError
            parser.feed_data(received)
        return int(parser.get_status_code())

    def close(self) -> None:
        self._writer.close()


class Load:
    """Counts answers by status; "none" where the connection failed, "unsent" where too many wait for an answer."""

    def __init__(self, host: str, port: int, key: str) -> None:
        self._host, self._port, self._key = host, port, key
        self._idle: list[Connection] = []
        self._open = 0
        self.counts: Counter[str] = Counter()

    async def run(self, rate: float, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        async with asyncio.TaskGroup() as group:
            for number in range(int(rate * seconds)):
                await asyncio.sleep(begun + number / rate - loop.time())
                group.create_task(self._send(self._search(number)))

    async def _send(self, request: bytes) -> None:
        if not self._idle and self._open >= MOST_CONNECTIONS:
            self.counts["unsent"] += 1
            return
        self._open += 1
        try:
            connection = self._idle.pop() if self._idle else await self._connect()
            self.counts[str(await connection.ask(request))] += 1
            self._idle.append(connection)
        except OSError:
            self.counts["none"] += 1
        finally:
            self._open -= 1

    async def _connect(self) -> Connection:
        return Connection(*await asyncio.open_connection(self._host, self._port))

    def _search(self, number: int) -> bytes:
        words = [WORDS[number % len(WORDS)], WORDS[number // len(WORDS) % len(WORDS)]]
        body = json.dumps({"query": " ".join(words)}).encode()
        head = (
            f"POST /api/v1/memories/search/ HTTP/1.1\r\nHost: {self._host}\r\nAuthorization: Bearer {self._key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


def main(host: str, port: str, key: str, rate: str, seconds: str) -> None:
    load = Load(host, int(port), key)
    asyncio.run(load.run(float(rate), float(seconds)))
    sys.stdout.write(json.dumps(load.counts))


if __name__ == "__main__":
    main(*sys.argv[1:])
