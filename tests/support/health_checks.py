"""Which of Hypothesis's health checks do not apply to a test."""

from hypothesis import HealthCheck

SHARED_STORE = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
"""For examples that share one store on purpose; and how long they take to draw is no fault of theirs."""
