"""Shapes that clients of other products send, on every surface that takes them."""
