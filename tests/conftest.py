"""Property tests draw the same examples on every machine, so that a gate's verdict repeats.

`HYPOTHESIS_PROFILE=explore` draws new ones each time.
"""

import os

from hypothesis import HealthCheck, settings

UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("gate", UNHURRIED, derandomize=True)
settings.register_profile("explore", UNHURRIED)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "gate"))
