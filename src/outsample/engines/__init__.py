"""Large numbers of rows: batches of any table type, cluster engines, sharded training sets."""
