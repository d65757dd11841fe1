"""What the API makes of a path and of the options beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from agentforge.api import targets
from agentforge.frontends.input_options import parse_inputs
from agentforge.frontends.module import _adapted
from agentforge.schema import UsageError

NET = "import torch\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x\n"


@pytest.mark.parametrize(
    ("example", "dtype", "cast"),
    [
        (torch.zeros(2, 3, dtype=torch.int64), "", None),
        (torch.zeros(2, 3, dtype=torch.float64), "", None),
        (torch.zeros(2, 3), torch.bfloat16, "bfloat16"),
        (torch.zeros(2, 3, dtype=torch.int64), "float16", "float16"),
    ],
)
def test_the_weights_of_a_file_have_the_dtype_that_is_given_and_not_the_example_s(
    tmp_path: Path, example: torch.Tensor, dtype: str | torch.dtype, cast: str | None
) -> None:
    (tmp_path / "net.py").write_text(NET)
    spec = f"{tmp_path / 'net.py'}:Net"
    options = targets._file_options(spec, (example,), None, "", "", dtype)
    assert options.input_dtypes == (str(example.dtype).removeprefix("torch."),)
    reference = _adapted(spec, options)[2]
    assert f"self.to(torch.{cast})" in reference if cast else "self.to(" not in reference


def test_a_path_runs_on_the_first_device_of_a_kind() -> None:
    for device in ("cpu", "cpu:0", torch.device("cpu", 0)):
        assert targets.where_of("model.py", device) == "cpu"
    assert targets.where_of("model.py", "cuda:0") == "cuda"
    with pytest.raises(UsageError, match="give 'cuda', and choose a GPU by CUDA_VISIBLE_DEVICES"):
        targets.where_of("model.py", torch.device("cuda", 1))


def test_example_inputs_name_those_of_a_transformers_model() -> None:
    example = {"past_time_features": torch.zeros(1, 8, 2), "past_observed_mask": torch.ones(1, 8).bool()}
    options = targets._file_options("hf:time/config.json", example, None, "", "", "")
    features, mask = parse_inputs(options)
    assert (features.keyword, features.shape, features.dtype) == ("past_time_features", (1, 8, 2), "float32")
    assert (mask.keyword, mask.dtype) == ("past_observed_mask", "bool")
    with pytest.raises(UsageError, match="brings its own inputs"):
        targets._file_options("time/model.py", example, None, "", "", "")
