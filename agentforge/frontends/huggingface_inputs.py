"""Inputs of a transformers architecture, from its forward's signature and its config."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agentforge.schema import TargetError, UsageError

from .input_options import InputOption

_TOKENS = 128
"""Default length of a sequence of tokens, if the model has as many positions."""
_PROMPT = 16
"""Text tokens after an image's tokens."""
_PIXELS = 224
"""Default height and width of images, in pixels."""
_SAMPLES = 16000
"""Default length of raw audio: a second at 16 kHz."""
_FRAMES = 256
"""Default number of audio frames."""
_POSITIONS = ("max_position_embeddings", "n_positions", "max_target_positions", "max_source_positions")
_MEDIA = ("pixel_values", "input_features", "input_values")
"""Images and audio, which a model may take beside its main input."""
_GRID_INPUTS = frozenset({"image_grid_thw", "pixel_attention_mask", "pixel_position_ids"})
"""Parameters of models that cut images into patches of several sizes before the forward."""
_TEXT_ONLY = (
    "the model was called with text only; name its image or audio inputs with --input, or write a file whose "
    "class Model builds the model"
)


@dataclass(frozen=True)
class ModelInput:
    """One argument of the forward."""

    name: str
    expression: str
    """Python expression that draws it."""


def model_inputs(
    config: Any,
    parameters: Mapping[str, bool],
    main: str,
    given: Collection[InputOption],
    dtype: str,
    *,
    text_only: bool = False,
) -> tuple[list[ModelInput], list[str]]:
    """Choose the inputs of an architecture.

    Args:
        config: its transformers config.
        parameters: names of its forward's parameters; True for those without a default.
        main: the class's `main_input_name`.
        given: the user's inputs; one without a name is the main input.
        dtype: torch's name of the floating dtype.
        text_only: leave out images and audio.

    Returns:
        Inputs in the order of the signature, and notes for the user.

    Raises:
        UsageError: the user's input is no parameter, or two inputs are unnamed.
        TargetError: the forward requires an input that cannot be derived, or `text_only` leaves nothing out.
    """
    sizes = _Sizes(config)
    chosen = _by_name(given, parameters, main)
    media = [name for name in _MEDIA if name in parameters]
    named = any(name in chosen for name in media)
    grids = main == "input_ids" and getattr(config, "vision_config", None) and _GRID_INPUTS & {*parameters}
    if text_only and (main != "input_ids" or named or grids or not media):
        raise TargetError("the model has no images or audio to leave out")
    without = bool(text_only or grids)
    notes = [_TEXT_ONLY] if without and media and not named else []
    wanted = dict.fromkeys((*_wanted(config, parameters, main, () if without else media), *chosen))
    missing = [name for name, required in parameters.items() if required and name not in wanted]
    found = []
    for name in sorted(wanted, key=list(parameters).index):
        option = chosen.get(name)
        shape = option.shape if option else sizes.shape(name)
        if shape is None:
            missing.append(name)
        elif option and option.chosen and not name.endswith(("ids", "mask")):
            found.append(ModelInput(name, option.expression))
        else:
            drawn = _draw(name, shape, sizes, dtype, images="pixel_values" in wanted)
            cast = f".to(torch.{option.dtype.value})" if option and option.chosen else ""
            found.append(ModelInput(name, drawn + cast))
    if missing:
        raise TargetError(
            f"the sizes of {missing[0]} do not follow from the config; give them: --input {missing[0]}=SIZES"
        )
    return found, notes


def _by_name(
    given: Collection[InputOption], parameters: Mapping[str, bool], main: str
) -> dict[str, InputOption]:
    if sum(not i.keyword for i in given) > 1:
        raise UsageError("only the main input goes without a name; write --input NAME=SIZES for the others")
    chosen = {i.keyword or main: i for i in given}
    for name in chosen:
        if name not in parameters:
            known = ", ".join(parameters)
            raise UsageError(f"the model's forward takes no {name!r}; it takes: {known}")
    return chosen


def _wanted(config: Any, parameters: Mapping[str, bool], main: str, media: Collection[str]) -> Iterator[str]:
    """Names of the inputs that a call of this architecture needs."""
    yield from (name for name in (main, *media) if name in parameters)
    text = getattr(config, "text_config", None) is not None
    if "input_ids" in parameters and text:
        yield "input_ids"
    if "decoder_input_ids" in parameters and getattr(config, "is_encoder_decoder", True):
        yield "decoder_input_ids"


def _draw(name: str, shape: tuple[int, ...], sizes: _Sizes, dtype: str, *, images: bool) -> str:
    if name.endswith("mask"):
        return f"torch.ones({shape!r}, dtype=torch.int64)"
    if not name.endswith("ids"):
        return f"torch.randn({shape!r}){'' if dtype == 'float32' else f'.to(torch.{dtype})'}"
    limit = sizes.vocabulary(name)
    marks = sizes.image_tokens if name == "input_ids" and images else 0
    if not marks:
        return _text(shape, limit, sizes.eos_token if name == "input_ids" else None)
    token = sizes.image_token
    rest = (shape[0], max(shape[1] - marks, 1))
    drawn = f"torch.randint(0, {min(limit, token) or limit}, {rest!r})"
    return f"torch.cat([torch.full(({shape[0]}, {marks}), {token}), {drawn}], 1)"


def _text(shape: tuple[int, ...], limit: int, eos: int | None) -> str:
    """Tokens below `limit`; if there is a token `eos`, each row ends with it, and it is nowhere else."""
    if eos is None or eos >= limit or not shape or shape[-1] < 2:
        return f"torch.randint(0, {limit}, {shape!r})"
    low, high = (0, eos) if 2 * eos > limit else (eos + 1, limit)
    drawn = f"torch.randint({low}, {high}, {(*shape[:-1], shape[-1] - 1)!r})"
    return f"torch.cat([{drawn}, torch.full({(*shape[:-1], 1)!r}, {eos})], -1)"


class _Sizes:
    """Default sizes, read from a config and the configs inside it."""

    def __init__(self, config: Any) -> None:
        self.config = config
        parts = [getattr(config, name, None) for name in ("text_config", "vision_config", "audio_config")]
        parts += [getattr(config, name, None) for name in ("encoder", "decoder")]
        self.parts = [config, *(p for p in parts if hasattr(p, "to_dict"))]

    def first(self, *names: str, default: Any = None) -> Any:
        """The first of these fields that the config or a config inside it has."""
        values = (getattr(part, name, None) for part in self.parts for name in names)
        return next((v for v in values if v is not None), default)

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Default shape of an input; None if it does not follow from the config."""
        if name == "input_ids":
            return (1, self.image_tokens + _PROMPT) if self.image_tokens else (1, self._tokens())
        if name == "decoder_input_ids":
            return (1, self._tokens())
        if name == "pixel_values":
            return self._image()
        if name == "input_values":
            return self._audio()
        if name == "input_features":
            return self._features()
        return None

    def _tokens(self) -> int:
        limits = [getattr(part, field, None) for part in self.parts for field in _POSITIONS]
        return min([_TOKENS, *(n for n in limits if isinstance(n, int) and n > 0)])

    def _image(self) -> tuple[int, ...]:
        size = self.first("image_size", default=_PIXELS)
        if isinstance(size, dict):
            size = [size["height"], size["width"]] if "height" in size else next(iter(size.values()))
        height, width = size if isinstance(size, (list, tuple)) else (size, size)
        channels = self.first("num_channels", "in_channels", "in_chans", default=3)
        frames = getattr(self.config, "num_frames", None)
        lead = (1, frames) if isinstance(frames, int) else (1,)
        return (*lead, int(channels), int(height), int(width))

    def _audio(self) -> tuple[int, ...]:
        mels, frames = self.first("num_mel_bins"), self.first("max_length")
        if mels and frames and not self.first("conv_dim"):
            return (1, int(frames), int(mels))
        channels = getattr(self.config, "audio_channels", None)
        return (1, int(channels), _SAMPLES) if channels else (1, _SAMPLES)

    def _features(self) -> tuple[int, ...] | None:
        mels = self.first("num_mel_bins")
        sources = getattr(self.config, "max_source_positions", None)
        channels = self.first("input_feat_per_channel", "feature_projection_input_dim")
        if channels:
            return (1, _FRAMES, int(channels))
        return (1, int(mels), 2 * int(sources)) if mels and sources else None

    def vocabulary(self, name: str) -> int:
        """Exclusive bound of token ids."""
        if name in ("token_type_ids", "position_ids"):
            return (
                int(self.first("type_vocab_size", default=1)) if name == "token_type_ids" else self._tokens()
            )
        parts = reversed(self.parts) if name.startswith("decoder") else iter(self.parts)
        found = (getattr(part, "vocab_size", None) for part in parts)
        return next((int(v) for v in found if isinstance(v, int) and v > 0), 16)

    @property
    def eos_token(self) -> int | None:
        """Token at the end of a text for an encoder and a decoder; None if the config names none."""
        found = self.first("eos_token_id") if getattr(self.config, "is_encoder_decoder", False) else None
        return found if isinstance(found, int) else None

    @property
    def image_token(self) -> int:
        """Token in place of a part of an image; 0 if the model has none."""
        names = ("image_token_id", "image_token_index")
        return next((int(v) for v in (getattr(self.config, n, None) for n in names) if v), 0)

    @property
    def image_tokens(self) -> int:
        """Number of such tokens for one image; 0 if images do not become tokens."""
        if not self.image_token:
            return 0
        for name in ("num_query_tokens", "mm_tokens_per_image"):
            if count := getattr(self.config, name, None):
                return int(count)
        vision = getattr(self.config, "vision_config", None)
        size, patch = getattr(vision, "image_size", None), getattr(vision, "patch_size", None)
        if not isinstance(size, int) or not isinstance(patch, int):
            return int(getattr(self.config, "image_seq_length", None) or 0)
        strategy = getattr(self.config, "vision_feature_select_strategy", "default")
        return int((size // patch) ** 2 + (strategy == "full"))
