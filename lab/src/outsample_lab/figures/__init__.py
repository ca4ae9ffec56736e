"""Programs that write measured figures into the documentation."""
