"""The clients that are built from this repository, against a running product."""
