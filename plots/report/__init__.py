"""The report of a set (one HTML page), and the generated pages of the repository."""
