"""Speed and scale: this library beside the bare neighbour search and beside other libraries."""
