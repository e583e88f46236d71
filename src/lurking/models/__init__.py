"""Model families: what the parameters are and how a prior is laid on them."""
