"""Murphy, lecture 24 (Stat 521A): scores and search for directed graphical models with hidden variables."""
