"""A small server that speaks OpenAI's protocol and says what the question tells it to."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PIECES = ["By tr", "ain [", "1", "], she says; not [7", "].\n", "  茶"]
ENDLESS = 600  # pieces of an answer that nobody should wait for
PACE = 0.05  # seconds between them


class Talker(BaseHTTPRequestHandler):
    """The question says how: `endless` is an answer of many pieces, `broken` half of one, `refuse` none at all."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        question = body["messages"][-1]["content"].rpartition("Question: ")[2]
        if "refuse" in question:
            self.send_error(400)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        if "endless" in question:
            self._endless()
        elif "broken" in question:
            self._say("Half of")
        else:
            self._whole()

    def log_message(self, *_: object) -> None:
        """Nothing: the tests read what the product says."""

    def _whole(self) -> None:
        for piece in PIECES:
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
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
