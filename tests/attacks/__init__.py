"""Tests of attacks: each former attack stays as a test."""
