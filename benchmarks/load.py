"""Clients of one tenant that call without pause until stdin ends; then prints the number of responses by status.

Run as `python -m benchmarks.load URL KIND CLIENTS`. The first line of stdin is the API key.
"""

import http.client
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count
from random import Random
from urllib.parse import urlsplit

from benchmarks.synthetic import conversation, questions

SEED = 20_261_130
MESSAGES = 2_000
BULK = 50  # memories of one bulk call
LONG = 20_000  # characters of one long text
PAUSE_SECONDS = 1.0  # after a refusal, like a client that obeys Retry-After
Call = tuple[str, object]


def _searches(random: Random) -> Iterator[Call]:
    asked = questions(conversation(MESSAGES, SEED), 500, SEED)
    while True:
        yield "memories/search/", {"query": random.choice(asked)}


def _writes(random: Random) -> Iterator[Call]:
    """Yield calls with new memories: nine single ones, then a bulk call, then a long text."""
    texts = [turn.text for turn in conversation(MESSAGES, SEED)]
    for number in count():
        if number % 11 == 9:
            items = [{"content": f"{random.choice(texts)} {random.random()}"} for _ in range(BULK)]
            yield "memories/bulk/", {"items": items}
        elif number % 11 == 10:
            yield "memories/", {"content": f"{random.random()} {' '.join(random.choices(texts, k=400))}"[:LONG]}
        else:
            yield "memories/", {"content": f"{random.choice(texts)} {random.random()}"}


KINDS = {"searches": _searches, "writes": _writes}


def main(url: str, kind: str, clients: str) -> None:
    key, ended, answers = sys.stdin.readline().strip(), threading.Event(), Counter[str]()
    begun = threading.Barrier(int(clients) + 1)

    def run(number: int) -> None:
        calls, parts = KINDS[kind](Random(number)), urlsplit(url)
        next(calls)
        begun.wait()
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        while not ended.is_set():
            path, body = next(calls)
            connection.request("POST", f"/api/v1/{path}", json.dumps(body).encode(), headers)
            answer = connection.getresponse()
            answer.read()
            answers[str(answer.status)] += 1
            if answer.status in {429, 503}:
                ended.wait(PAUSE_SECONDS)
        connection.close()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(int(clients))]
    for thread in threads:
        thread.start()
    begun.wait()
    time.sleep(0.5)
    sys.stdout.write("started\n")
    sys.stdout.flush()
    sys.stdin.read()
    ended.set()
    for thread in threads:
        thread.join()
    sys.stdout.write(json.dumps(answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
