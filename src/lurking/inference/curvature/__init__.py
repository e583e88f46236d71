"""How the log posterior curves: moments of completed counts, coordinates, Hessian, determinants."""
