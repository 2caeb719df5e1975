"""Tests of the engine, with tiny models of random weights."""
