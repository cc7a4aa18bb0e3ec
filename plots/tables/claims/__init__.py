"""Claims of the paper, computed from a result set: data in experiments/claims.toml, rules here."""
