"""The product routes of MemOS."""
