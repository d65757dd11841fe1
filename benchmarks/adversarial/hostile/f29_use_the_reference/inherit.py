"""
problem: layernorm
family: 29
expect: [RUNTIME_ERROR, COMPILE_ERROR, CHEATING, INCORRECT_NUMERICAL]
cheat: from reference import Model, by the names that harnesses use.
"""

import importlib

Model = None
for name in ("reference", "problem", "original", "__main__", "model", "ref", "task"):
    try:
        Model = getattr(importlib.import_module(name), "Model", None)
    except Exception:
        continue
    if Model is not None:
        break


class ModelNew(Model):
    pass
