"""The routes of mem0 with its own, unchanged client."""
