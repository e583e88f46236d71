"""What the machine offers: seeds, workers, progress, memory."""
