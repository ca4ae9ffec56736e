"""How near to the truth, beside other libraries, on maps of every kind."""
