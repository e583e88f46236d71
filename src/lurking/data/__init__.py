"""Tables: columns, the coding rule, missing cells, unique rows, and reading files and frames."""
