"""A small server that speaks OpenAI's protocol and says what the question tells it to."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PIECES = ["By tr", "ain [", "1", "], she says; not [7", "].\n", "  茶"]
ENDLESS = 600  # pieces of an answer that nobody should wait for
PACE = 0.05  # seconds between them
SILENCE = 30.0  # seconds, unless the tests are over before
MARKS = ["**By ", "train** [1]:\n\n- one\n- two\n\n", "[press](https://evil.example/)"]


class Talker(BaseHTTPRequestHandler):
    """The question says how: `endless` is an answer of many pieces, `broken` half of one, `refuse` none at all.

    `silent` is none for long, `marks` one in Markdown.
    """

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        question = body["messages"][-1]["content"].rpartition("Question: ")[2]
        if "refuse" in question:
            self.send_error(400)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        if "silent" in question:
            self.server.silence.wait(SILENCE)  # type: ignore[attr-defined]
            return
        if "marks" in question:
            self._whole(MARKS)
        elif "endless" in question:
            self._endless()
        elif "broken" in question:
            self._say("Half of")
        else:
            self._whole(PIECES)

    def log_message(self, *_: object) -> None:
        """Nothing: the tests read what the product says."""

    def _whole(self, pieces: list[str]) -> None:
        for piece in pieces:
            self._say(piece)
        self._say("", finish="stop")
        self.wfile.write(b"data: [DONE]\n\n")

    def _endless(self) -> None:
        pace = threading.Event()
        try:
            for number in range(ENDLESS):
                self._say(f"word{number} ")
                pace.wait(PACE)
        except (BrokenPipeError, ConnectionResetError):
            return  # the product has hung up, as it should

    def _say(self, text: str, finish: str | None = None) -> None:
        choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
        chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "talker", "choices": [choice]}
        self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        self.wfile.flush()


@contextmanager
def talking() -> Iterator[str]:
    """The address for MEMOS_LLM_URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Talker)
    server.daemon_threads = True
    server.silence = threading.Event()  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.silence.set()  # type: ignore[attr-defined]
        server.shutdown()
        server.server_close()
        thread.join()
