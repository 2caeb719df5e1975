"""Wiring: settings, addresses, processes. Nobody imports it."""
