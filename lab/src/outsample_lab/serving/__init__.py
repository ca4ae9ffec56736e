"""A service under load: one row and many, below and far above capacity, among bad clients."""
