"""Programs that use the product, to read and to begin with."""
