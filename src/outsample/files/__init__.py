"""Files: models, tables in every format, and one way to write them."""
