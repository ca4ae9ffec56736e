"""Tables to points: units, categories, missing cells and dates inside the model."""
