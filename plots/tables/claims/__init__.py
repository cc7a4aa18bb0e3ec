"""Claims of the sources, computed from a result set: data in experiments/<source>/claims.toml, rules here."""
