"""Formats of dates and times in pages, by language."""
