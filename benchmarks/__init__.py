"""Benchmarks of a running server or, for ablation, sweep and nearest, of the product in process.

Each writes its raw output, with the command that ran it, to results/.
"""
