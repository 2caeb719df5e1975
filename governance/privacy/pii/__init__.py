"""Personal data and secrets in texts: pure rules, and the detector interface of the product."""
