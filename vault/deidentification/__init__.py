"""Texts about data subjects without what tells who they are: names, relations, addresses, birth dates, numbers."""
