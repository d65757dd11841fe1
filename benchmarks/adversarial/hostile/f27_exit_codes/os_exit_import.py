"""
problem: relu
family: 27
expect: [CRASHED, RUNTIME_ERROR, CHEATING]
cheat: os._exit(0) at import.
"""

import os

os._exit(0)


class ModelNew:
    pass
