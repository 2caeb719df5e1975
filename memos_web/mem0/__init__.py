"""The routes that mem0's Python client calls, at `/mem0/`: an agent changes its address and key, and nothing else."""
