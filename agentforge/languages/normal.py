"""Whether two solutions are the same program: their text without layout and comments."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import PurePosixPath

from agentforge.schema import Solution, SourceFile, content_hash

_C_LIKE = frozenset({".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp"})
_C_TOKEN = re.compile(r"""(?P<kept>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|//[^\n]*|/\*.*?\*/""", re.DOTALL)
_TUNE = "@tune"
"""Comments with it are followed, so they stay."""
_LAYOUT = frozenset({tokenize.NL, tokenize.COMMENT, tokenize.ENCODING, tokenize.ENDMARKER})


def normalised(solution: Solution, leave_out: frozenset[str] = frozenset()) -> str:
    """Hash of a solution's sources without comments and layout; equal for programs that differ in no more.

    Args:
        leave_out: suffixes of files that do not count.
    """
    files = [file for file in solution.sources if PurePosixPath(file.path).suffix not in leave_out]
    return content_hash([solution.spec.model_dump(mode="json"), {f.path: [*_tokens(f)] for f in files}])


def of_compiled(solution: Solution) -> str:
    """The same without the files that a C++ compiler reads."""
    return normalised(solution, _C_LIKE)


def _tokens(file: SourceFile) -> Iterator[str]:
    suffix, text = PurePosixPath(file.path).suffix, file.content
    if suffix in _C_LIKE:
        bare = _C_TOKEN.sub(lambda m: m[0] if m["kept"] or _TUNE in m[0] else " ", text)
        yield from (" ".join(line.split()) for line in bare.splitlines() if line.strip())
    elif suffix == ".py":
        try:
            yield from _python(text)
        except (tokenize.TokenError, SyntaxError, ValueError):
            yield text
    else:
        yield text


def _python(text: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.INDENT, tokenize.DEDENT):
            yield tokenize.tok_name[token.type]
        elif token.type not in _LAYOUT or _TUNE in token.string:
            yield token.string
