"""What ``outsample demo`` shows."""
