"""Reversible jumps between structures and numbers of states."""
