"""Personal data and secrets in texts: pure rules, and the port that the product asks them through."""
