"""What `outsample bench` does: measure, then write figures, a picture and a page."""

from outsample.bench.accuracy import Benchmark, map_table, run_accuracy, summary_table
from outsample.bench.environment import data_folder, versions
from outsample.bench.novelty import NoveltyBenchmark, run_novelty, set_table, standing_tables

__all__ = [
    "Benchmark",
    "NoveltyBenchmark",
    "data_folder",
    "map_table",
    "run_accuracy",
    "run_novelty",
    "set_table",
    "standing_tables",
    "summary_table",
    "versions",
]
