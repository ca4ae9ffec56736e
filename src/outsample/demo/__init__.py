"""What ``outsample demo`` runs: digits hidden from a t-SNE map and placed again."""
