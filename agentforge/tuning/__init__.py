"""The tuner: parameters of one attempt's kernels as a study, whose trials are kept with the attempt."""

from .study import Space, check_tuning, next_point
from .tuner import Tuner
from .variants import Variants, variants_of

__all__ = ["Space", "Tuner", "Variants", "check_tuning", "next_point", "variants_of"]
