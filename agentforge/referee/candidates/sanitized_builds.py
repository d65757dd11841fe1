"""Builds of one solution's C++ kernels with sanitizers, compiled in the background."""

from __future__ import annotations

import shutil
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

from agentforge.languages import language_info
from agentforge.languages.cpp.sanitizers.sanitizers import MEMORY, RACES, NotBuilt, Sanitizer, build
from agentforge.schema import Solution

from .build import CandidateBuilder
from .sanitizer_pool import SanitizerPool

SANITIZERS = (MEMORY, RACES)


def has_kernels(solution: Solution) -> bool:
    """Whether there are sources that sanitizers can be built into."""
    info = language_info(solution.spec.language)
    return info.sanitizers and any(f.path.endswith(info.suffixes) for f in solution.sources)


class SanitizedBuilds:
    """One build for each sanitizer. Compiling takes seconds and begins at once; `close` ends it."""

    def __init__(
        self, sanitizer_pool: SanitizerPool, builder: CandidateBuilder, solution: Solution, folder: Path
    ) -> None:
        self.pool = sanitizer_pool
        self._builder = builder
        self._solution = solution
        self._threads = ThreadPoolExecutor(len(SANITIZERS))
        self._built: dict[str, Future[Path]] = {}
        for sanitizer in SANITIZERS:
            sanitizer_pool.prepare(sanitizer)
            self._built[sanitizer.name] = self._threads.submit(self._build, folder, sanitizer)

    def folder(self, sanitizer: Sanitizer) -> Path:
        """Of one build; waits for the compiler.

        Raises:
            NotBuilt: it cannot be built with this sanitizer.
        """
        return self._built[sanitizer.name].result()

    def close(self) -> None:
        """Wait for the compilers and remove the builds."""
        self._threads.shutdown(cancel_futures=True)
        for future in self._built.values():
            with suppress(NotBuilt, CancelledError):
                shutil.rmtree(future.result(), ignore_errors=True)

    def _build(self, folder: Path, sanitizer: Sanitizer) -> Path:
        copy = folder.with_name(f"{folder.name}-{sanitizer.name}")
        builder = self._builder
        timeout, run = builder.settings.build_timeout_s, partial(builder.run, background=True)
        try:
            shutil.copytree(folder, copy, symlinks=True)
            build(self._solution, copy, sanitizer, cache=builder.cache, run=run, timeout_s=timeout)
        except BaseException as error:
            shutil.rmtree(copy, ignore_errors=True)
            if isinstance(error, OSError | ValueError | RecursionError):
                raise NotBuilt(f"its {sanitizer.name} build failed: {type(error).__name__}") from error
            raise
        return copy
