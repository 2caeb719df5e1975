"""Makes src/memos_client/blocking.py, the client that blocks, from aio.py, the client to await."""

import re
from pathlib import Path

SOURCE = Path(__file__).parent / "src/memos_client"
HEAD = '"""The client that blocks. Made from `aio.py` by `python make_blocking.py`: change that file."""'
CHANGES = [
    (r'^""".*?"""', HEAD),
    (r"\bimport asyncio\b", "import time"),
    (r"\basyncio\.sleep\b", "time.sleep"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\bAsyncMemos\b", "Memos"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\bAsyncClient\b", "Client"),
    (r"\bAsyncBaseTransport\b", "BaseTransport"),
    (r"\b__a(enter|exit)__\b", r"__\1__"),
    (r"\ba(close|read|iter_lines)\(", r"\1("),
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
]


def blocking(source: str) -> str:
    """The text of blocking.py."""
    for pattern, replacement in CHANGES:
        source = re.sub(pattern, replacement, source, count=1 if replacement is HEAD else 0, flags=re.MULTILINE)
    lines = source.split("\n")
    lines.remove("import time")
    lines.insert(lines.index("import json") + 1, "import time")  # in the order of the alphabet
    return "\n".join(lines)


if __name__ == "__main__":
    (SOURCE / "blocking.py").write_text(blocking((SOURCE / "aio.py").read_text(encoding="utf-8")), encoding="utf-8")
