"""A local engine: one language model with KV caches and LoRA adapters, by OpenAI's protocol and a few calls more."""
