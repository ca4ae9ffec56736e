"""Minutes of network traffic: DARPA 1998, or simulated."""
