"""The address at which people open the product, with proxies in front of it."""
