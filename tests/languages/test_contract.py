from __future__ import annotations

from agentforge.testing.language import LanguageContract

from .sources import RMSNORM, RMSNORM_CPP


class TestCpp(LanguageContract):
    name = "cpp"
    working = RMSNORM
    broken = {**RMSNORM, "kernel.cpp": RMSNORM_CPP.replace("float sum = 0", "flot sum = 0")}
    broken_file = "kernel.cpp"
    broken_line = 10


class TestPython(LanguageContract):
    name = "python"
    working = {"model_new.py": "import torch\n\nclass ModelNew(torch.nn.Module):\n    pass\n"}
    broken = {"model_new.py": "import torch\n\nclass ModelNew(torch.nn.Module:\n    pass\n"}
    broken_file = "model_new.py"
    broken_line = 3
