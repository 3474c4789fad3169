"""What every test may count on: no deadline for property tests, the same examples on CI each time."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile("kit", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("kit"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "kit")
