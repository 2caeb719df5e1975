"""Measurements of a running server or, of ablation, sweep and nearest, of the product in process.

Each writes its raw output, with the command that made it, to results/.
"""
