"""Structures compared, averaged and searched.

The package itself can be called: ``lurking.search(table, …)`` is `lurking.search.api.search`. The function has the
name of its package, and whichever of the two is imported last would otherwise hide the other.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lurking.search.api import SearchResult


class _CallablePackage(ModuleType):
    """A package that is also the function named like it."""

    def __call__(self, *arguments: Any, **options: Any) -> SearchResult:
        """Find the structure of highest score on a table; see `lurking.search.api.search`."""
        from lurking.search.api import search

        return search(*arguments, **options)


sys.modules[__name__].__class__ = _CallablePackage
