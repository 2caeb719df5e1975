"""The documentation site: its pages, and the snippets of its guides."""
