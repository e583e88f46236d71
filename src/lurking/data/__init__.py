"""The room of data: tables, the coding rule, missing cells, unique rows, and reading files and frames."""

from __future__ import annotations

from lurking.data.column import Column
from lurking.data.files import read
from lurking.data.patterns import Patterns
from lurking.data.table import Table, as_table

__all__ = ["Column", "Patterns", "Table", "as_table", "read"]
