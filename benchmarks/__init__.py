"""Measurements against a running server. Each writes its raw output, with the command that made it, to results/."""
