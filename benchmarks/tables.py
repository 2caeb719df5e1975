"""Figures as Markdown."""

from collections.abc import Sequence


def markdown(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table with one line for each row; the first column names it."""
    lines = [headers, ["---"] * len(headers), *[[str(cell) for cell in row] for row in rows]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
