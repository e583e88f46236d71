"""lurking: how much evidence the data hold for each structure with hidden variables."""
