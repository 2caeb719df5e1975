"""Makes the modules that block from those to await: blocking.py from aio.py, items.py from aio_items.py, …"""

import re
from pathlib import Path

SOURCE = Path(__file__).parent / "src/memos_client"
MADE = {"aio": "blocking", "aio_items": "items", "aio_history": "history"}
HEAD = '"""{} Made from `{}.py` by `python make_blocking.py`: change that file."""'
SUMMARIES = {
    "blocking": "The client that blocks.",
    "items": "Items of a key-value store, by the client that blocks.",
    "history": "The history of a conversation, by the client that blocks.",
}
CHANGES = [
    (r"\bimport asyncio\b", "import time"),
    (r"\basyncio\.sleep\b", "time.sleep"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\bmemos_client\.aio\b", "memos_client.blocking"),
    (r"\bAsync(Memos|Items|History|Iterator|Client)\b", r"\1"),
    (r"\bAsyncBaseTransport\b", "BaseTransport"),
    (r"\b__a(enter|exit)__\b", r"__\1__"),
    (r"\ba(close|read|iter_lines)\(", r"\1("),
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
]


def blocking(source: str, name: str) -> str:
    """The text of the module that is made from `name`.py."""
    head = HEAD.format(SUMMARIES[MADE[name]], name)
    source = re.sub(r'^""".*?"""', lambda _: head, source, count=1, flags=re.DOTALL)
    for pattern, replacement in CHANGES:
        source = re.sub(pattern, replacement, source, flags=re.MULTILINE)
    lines = source.split("\n")
    if "import time" in lines:
        lines.remove("import time")
        lines.insert(lines.index("import json") + 1, "import time")  # in the order of the alphabet
    return "\n".join(lines)


if __name__ == "__main__":
    for name, made in MADE.items():
        text = blocking((SOURCE / f"{name}.py").read_text(encoding="utf-8"), name)
        (SOURCE / f"{made}.py").write_text(text, encoding="utf-8")
