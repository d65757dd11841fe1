"""A generation by a causal language model of transformers: a prefill and steps with a static cache."""

from __future__ import annotations

import copy
import inspect
import re
from dataclasses import dataclass
from typing import Any

from agentforge.isolation.memory_errors import is_out_of_memory
from agentforge.schema import Definition, Distribution, DType, TargetError, TensorInput, UsageError, Workload
from agentforge.visible import first_line

_CHECKED = 16
"""Tokens that are compared with one forward without a cache, at most."""
_SAME, _SAME_16_BIT = 1e-3, 0.1
"""Largest relative L2 distance of the logits with and without a cache."""


@dataclass(frozen=True)
class Lengths:
    """Tokens of a generation."""

    prompt: int
    new: int

    @property
    def cache(self) -> int:
        """Tokens that the cache has room for."""
        return self.prompt + self.new


def parse_lengths(text: str) -> Lengths:
    """Parse `--generate prompt=128,new=64`.

    Raises:
        UsageError: it has another form, or a number is too small: without a second new token there is no
            decode step.
    """
    found = re.fullmatch(r"prompt=(\d{1,9}),new=(\d{1,9})", text.replace(" ", ""))
    if found is None or int(found[1]) < 1 or int(found[2]) < 2:
        raise UsageError(f"--generate {text!r} does not read; write prompt=128,new=64, at least 1 and 2")
    return Lengths(*map(int, found.groups()))


def cache_shapes(made: Any, base: Any, lengths: Lengths) -> list[tuple[int, ...]]:
    """Shapes of the keys and values of each layer in turn: `[1, heads, tokens, size]`.

    Args:
        made: the transformers config.
        base: the model's class.

    Raises:
        TargetError: the model does not generate with a static cache of keys and values.
        UsageError: it has fewer positions than the generation.
    """
    refusal = f"{base.__name__} does not generate with a static cache; leave out --generate"
    if made.is_encoder_decoder or not base.can_generate() or base.main_input_name != "input_ids":
        raise TargetError(f"{base.__name__} is no causal language model; leave out --generate")
    if not getattr(base, "_can_compile_fullgraph", False):
        raise TargetError(refusal)
    positions = getattr(made.get_text_config(), "max_position_embeddings", None)
    if isinstance(positions, int) and 0 < positions < lengths.cache:
        raise UsageError(
            f"--generate needs {lengths.cache} positions, and the model has {positions}; give fewer tokens"
        )
    import torch
    from transformers.cache_utils import StaticCache, StaticLayer

    try:
        # Nothing is computed on this device; it multiplies experts in this type only.
        with torch.device("meta"), torch.no_grad():
            model = base(copy.deepcopy(made)).eval().to(torch.bfloat16)
            cache = StaticCache(config=model.config, max_cache_len=lengths.cache)
            model(input_ids=torch.zeros((1, 1), dtype=torch.int64), past_key_values=cache, use_cache=True)
        layers = cache.layers
        found = [t.shape for layer in layers for t in (layer.keys, layer.values)]
    except Exception as error:
        raise TargetError(refusal) from error
    if not found or any(not isinstance(layer, StaticLayer) for layer in layers):
        raise TargetError(refusal)
    return [(1, int(s[1]), lengths.cache, int(s[3])) for s in found]


def generation_source(
    made: Any, base: Any, dtype: str, lengths: Lengths, cast: str
) -> tuple[str, tuple[Workload, ...], list[str]]:
    """The class that takes its cache as arguments, for the source of a reference, with its two workloads.

    Args:
        made: the transformers config.
        base: the model's class.
        dtype: of the cache.
        lengths: tokens of the generation.
        cast: statements that give the model's tensors their dtypes.

    Returns:
        Python source from the class on, prefill and decode step, and notes for the user.

    Raises:
        TargetError: see `cache_shapes`.
    """
    shapes = cache_shapes(made, base, lengths)
    vocabulary = int(made.get_text_config().vocab_size)
    keeps = "logits_to_keep" in inspect.signature(base.forward).parameters
    source = _TEMPLATE.format(
        shapes="\n".join(["[", *(f"    {shape!r}," for shape in shapes), "]"]),
        prompt=lengths.prompt,
        length=lengths.cache,
        vocabulary=vocabulary,
        dtype=dtype,
        cast=cast,
        keep=", logits_to_keep=1" if keeps else "",
    )
    cache = [
        TensorInput(name=f"cache_{n}", shape=shape, dtype=DType(dtype)) for n, shape in enumerate(shapes)
    ]

    def workload(name: str, tokens: int, position: Distribution, weight: float) -> Workload:
        ids = Distribution(kind="integers", a=0, b=vocabulary)
        inputs = (
            TensorInput(name="input_ids", shape=(1, tokens), dtype=DType.INT64, distribution=ids),
            TensorInput(name="position", shape=(1,), dtype=DType.INT64, distribution=position),
            *cache,
        )
        return Workload(name=name, inputs=inputs, weight=weight)

    start = Distribution(kind="integers", a=0, b=lengths.new + 1)
    later = Distribution(kind="integers", a=lengths.prompt, b=lengths.cache)
    steps = lengths.new - 1  # the prefill gives the first new token
    workloads = (workload("prefill", lengths.prompt, start, 1), workload("decode", 1, later, steps))
    note = f"one forward is a generation here: a prefill of {lengths.prompt} tokens, {steps} decode steps"
    return source, workloads, [note]


def check_generation(definition: Definition, prompt: int, device: str) -> None:
    """Compare a prefill and a decode step with one forward that has no cache, in this process.

    Raises:
        TargetError: the model fails, or the logits differ.
        Exception: torch's own if memory runs out.
    """
    import torch

    from agentforge.problems.kernelbench import load_problem

    name = definition.name
    try:
        problem = load_problem(definition)
        model = problem.build(0).to(device)
        count = min(prompt, _CHECKED)
        torch.manual_seed(0)
        tokens = torch.randint(0, problem.module.VOCABULARY, (1, count + 1)).to(device)
        with torch.no_grad():
            whole = problem.module.Base.forward(model, input_ids=tokens, use_cache=False).logits[:, -1]
            cache = model.new_cache()
            position = torch.zeros(1, dtype=torch.int64, device=device)
            model(tokens[:, :count], position, *cache)
            steps = model(tokens[:, count:], position + count, *cache)
    except TargetError:
        raise
    except Exception as error:
        if is_out_of_memory(error, str(error)):
            raise
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise TargetError(f"{name} fails with a static cache ({reason}); leave out --generate") from error
    distance = (steps.double() - whole.double()).norm() / whole.double().norm()
    if not distance <= (_SAME if whole.itemsize > 2 else _SAME_16_BIT):
        raise TargetError(f"{name} gives other logits with a static cache than without; leave out --generate")


_TEMPLATE = '''SHAPES = {shapes}
"""Shapes of the keys and values of each layer in turn: batch, heads, tokens, size of a head."""
PROMPT, LENGTH, VOCABULARY = {prompt}, {length}, {vocabulary}


class _Layer(StaticLayer):
    """A layer of the static cache in tensors of the caller."""

    def __init__(self, keys, values, position):
        self.keys, self.values, self.cumulative_length = keys, values, position
        self.dtype, self.device, self.max_cache_len = keys.dtype, keys.device, keys.shape[2]
        self.batch_size, self.num_heads, self.is_initialized = keys.shape[0], keys.shape[1], True
        self.k_head_dim, self.v_head_dim = keys.shape[3], values.shape[3]


class Model(Base):
    """The transformers class itself, so that its state_dict keys stay; it takes its cache as tensors."""

    def __init__(self):
        super().__init__(_configuration())
        {cast}

    def forward(self, input_ids, position, *cache):
        """Logits `[1, vocabulary]` after the last token.

        Args:
            input_ids: tokens, `[1, n]`.
            position: number of tokens before them, `[1]`, int64.
            cache: keys and values of each layer in turn; those of the tokens are written to them.
        """
        layers = [_Layer(k, v, position[0].clone()) for k, v in zip(cache[::2], cache[1::2])]
        past = Cache(layers=layers)
        output = super().forward(input_ids=input_ids, past_key_values=past, use_cache=True{keep})
        return output.logits[:, -1]

    def new_cache(self):
        """A cache for one generation of at most `LENGTH` tokens, prompt included."""
        like = next(self.parameters())
        return [torch.zeros(shape, dtype=like.dtype, device=like.device) for shape in SHAPES]

    @torch.no_grad()
    def generate(self, input_ids, max_new_tokens):
        """Decode greedily: the prompt `[1, n]` and `max_new_tokens` more, `[1, n + max_new_tokens]`."""
        if input_ids.shape[1] + max_new_tokens > LENGTH:
            raise ValueError(f"the cache has room for {{LENGTH}} tokens, prompt included")
        cache, tokens = self.new_cache(), [input_ids]
        position = torch.zeros(1, dtype=torch.int64, device=input_ids.device)
        for _ in range(max_new_tokens):
            logits = self(tokens[-1], position, *cache)
            position = position + tokens[-1].shape[1]
            tokens.append(logits.argmax(-1, keepdim=True))
        return torch.cat(tokens, 1)


# transformers looks up a class's module to see how its attention is written.
Model.__module__ = Base.__module__


finite = True  # else the unused part of the cache could hold NaN


def _tokens(count):
    return torch.randint(0, VOCABULARY, (1, count))


def _random_cache():
    return [torch.randn(shape).to(torch.{dtype}) for shape in SHAPES]


def get_inputs():
    """Of the prefill."""
    return [_tokens(PROMPT), torch.randint(0, LENGTH - PROMPT + 1, (1,)), *_random_cache()]


def decode_inputs():
    """Of a decode step."""
    return [_tokens(1), torch.randint(PROMPT, LENGTH, (1,)), *_random_cache()]


EXAMPLES = [get_inputs, decode_inputs]


def get_init_inputs():
    return []
'''
