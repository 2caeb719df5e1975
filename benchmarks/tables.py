"""Formats figures as Markdown."""

from collections.abc import Sequence


def markdown(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table with one line per row; the first column names the row."""
    lines = [headers, ["---"] * len(headers), *[[str(cell) for cell in row] for row in rows]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
