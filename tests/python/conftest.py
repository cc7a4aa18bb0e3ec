"""For all tests: Hypothesis measures no time, since a loaded machine would fail what is right."""

from hypothesis import HealthCheck, settings

settings.register_profile("xcorr", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("xcorr")
