"""Ways of placing points: objects with ``fit``, then ``place`` and ``leave_out``."""
