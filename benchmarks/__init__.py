"""Measurements of a running server or, of ablation, sweep, nearest and statements, of the product in process.

Each writes its raw output, with the command that made it, to results/.
"""
