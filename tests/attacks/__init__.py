"""What a hostile week tries: each attack stays as a test."""
