"""Which extension is best on the user's own map: hold-out errors of each."""
