"""How kernels are compiled: to a form that functions with an address link and inline, and to no machine code.

Numba optimises every function together with all that it calls, and makes machine code of both, again at each level of
calls. A kernel is never called on its own: its machine code would not run. So a kernel is brought to LLVM's form and no
further. What Python calls (:func:`mipforest.searches.entry`), or what has an address
(:mod:`mipforest.searches.addresses`), links all kernels below it, and these are optimised there, once.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler import Compiler


class _KernelLibrary(JITCodeLibrary):  # type: ignore[misc]
    """A function that is linked into others and never runs on its own."""

    def _optimize_final_module(self) -> None:
        """Do nothing: what links it optimises it."""

    def _finalize_final_module(self) -> None:
        """Make no machine code."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def serialize_using_object_code(self) -> Any:
        """Return what is kept on disk: there is no object code."""
        return self.serialize_using_bitcode()


class _KernelCodegen(JITCPUCodegen):  # type: ignore[misc]
    """The code generator of a process, whose engine it shares, with libraries that are linked only."""

    _library_class = _KernelLibrary

    def __init__(self, codegen: JITCPUCodegen) -> None:
        self.__dict__.update(codegen.__dict__)

    def set_env(self, env_name: str, env: Any) -> None:
        """Do nothing: no machine code has a place for it, and kernels hold no Python objects."""


def context_of_kernels(context: Any) -> Any:
    """Return a compiler's target context whose libraries are linked only."""
    return context.subtarget(_internal_codegen=_KernelCodegen(context.codegen()))


class KernelCompiler(Compiler):  # type: ignore[misc]
    """Numba's compiler, of functions that are linked only."""

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        self.state.targetctx = context_of_kernels(self.state.targetctx)
