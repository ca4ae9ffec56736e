"""Files of users: tables of numbers."""
