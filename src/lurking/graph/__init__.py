"""Structures: directed acyclic graphs with hidden nodes, their text, symmetries, canonical form and spaces.

Nothing here depends on data; networkx is imported only when a structure is turned into or from one of its graphs.
"""
