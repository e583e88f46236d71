"""EM and VBEM: one loop, restarts, and what came of it."""
