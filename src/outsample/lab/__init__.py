"""Research, not library: the paper again, benches, the demo. Nothing outside imports it."""
