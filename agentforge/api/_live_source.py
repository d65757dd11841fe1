"""The source that replaces a live module in a run's other processes. It imports torch, not AgentForge."""

SOURCE = '''"""{name}: a live module that `agentforge.optimize` was given.

The structure is pickled below. Weights are read from a file; if it is not there, they are drawn with the same
mean and spread, and `load_state_dict` gives the model its own.
"""

import base64
import io
import pickle
import zlib
from pathlib import Path

import torch
from torch.nn.utils import parametrize, prune
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm

{imports}
{listing}

_WEIGHTS = Path({weights!r})
_STRUCTURE = """
{data}
"""


class _Unpickler(pickle.Unpickler):
    """Puts weights in the places that the pickle names."""

    def __init__(self):
        super().__init__(io.BytesIO(zlib.decompress(base64.b64decode(_STRUCTURE))))
        self._values = torch.load(_WEIGHTS, weights_only=True) if _readable(_WEIGHTS) else {{}}
        self._made = {{}}

    def persistent_load(self, key):
        if not key:
            return _parametrized
        name = key[0]
        if len(key) == 1:  # see `load`
            return None
        if name not in self._made:  # a tensor that several modules share stays one tensor
            self._made[name] = _weight(self._values.get(name), *key[1:])
        return self._made[name]

    def load(self):
        loaded = super().load()
        for module in loaded.modules():
            for hook in reversed(module._forward_pre_hooks.values()):  # a later one computes what others read
                if isinstance(hook, (WeightNorm, SpectralNorm, prune.BasePruningMethod)):
                    _compute(module, hook, getattr(hook, "_tensor_name", None) or hook.name)
        return loaded


def _compute(module, hook, name):
    """Compute a tensor if the pickle leaves it out; a step of a power iteration belongs to a call."""
    if vars(module).get(name) is None:
        training, module.training = module.training, False
        with torch.no_grad():
            hook(module, ())
        module.training = training


def _parametrized(kind, names):
    """A module without its attributes yet, whose tensors of these names are computed when they are read."""
    module = kind.__new__(kind)
    parametrize._inject_new_class(module)
    for name in names:
        parametrize._inject_property(module, name)
    return module


def _readable(path):
    try:
        return path.is_file()
    except OSError:
        return False


def _weight(value, kind, shape, strides, dtype, requires_grad, like):
    if value is None:
        sizes = (*shape, 2) if dtype.startswith("complex") else shape
        value = _drawn(sizes, *like)
        value = torch.view_as_complex(value) if sizes != shape else value
        value = torch.empty_strided(shape, strides, dtype=getattr(torch, dtype)).copy_(value)
    if kind == "parameter":
        return torch.nn.Parameter(value, requires_grad=requires_grad)
    return value


def _drawn(sizes, how, low, spread):
    if how == "integers":
        return torch.randint(low, low + spread, sizes)
    if how == "bernoulli":
        return torch.rand(sizes) < low
    return torch.randn(sizes) * spread + low if how == "normal" else torch.rand(sizes) * spread + low


_LOADED = _Unpickler().load()
_MODES = [module.training for module in _LOADED.modules()]


class Model(type(_LOADED)):
    def __init__(self):
        vars(self).update(vars(_Unpickler().load()))

    def train(self, mode=True):
        """The training modes are those that the module was given with."""
        for module, training in zip(self.modules(), _MODES):
            module.training = training
        return self


Model.__name__ = type(_LOADED).__name__
Model.__qualname__ = type(_LOADED).__qualname__
{strided}

def get_inputs():
    return {inputs}


def get_init_inputs():
    return []
'''
