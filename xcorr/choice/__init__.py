"""Which variant, parameters and precision to run a problem with."""
