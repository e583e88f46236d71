"""Structures compared, averaged and searched.

The package itself can be called: ``lurking.search(table, …)`` is `lurking.search.api.search`. The function has the
name of its package, and whichever of the two is imported last would otherwise hide the other.
"""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lurking.errors import UnknownNameError

if TYPE_CHECKING:
    from lurking.search.api import SearchResult


class _CallablePackage(ModuleType):
    """A package that is also the function named like it: called as that, and described as that by `help`."""

    def __call__(self, *arguments: Any, **options: Any) -> SearchResult:
        """Find the structure of highest score on a table; see `lurking.search.api.search`."""
        from lurking.search.api import search

        known = self.__signature__.parameters
        for name in options:
            if name not in known:
                raise UnknownNameError("option of search", name, tuple(known))
        return search(*arguments, **options)

    @property
    def __signature__(self) -> inspect.Signature:
        """The arguments of the function."""
        from lurking.search.api import search

        return inspect.signature(search)

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        """What the function does, then what the package is."""
        from lurking.search.api import search

        return f"{inspect.getdoc(search)}\n\nsearch{self.__signature__}\n\n{self.__dict__['__doc__']}"


sys.modules[__name__].__class__ = _CallablePackage
