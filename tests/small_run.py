"""The options of a run that ends at once, for tests of the command line."""

SMALL = (
    "solve",
    "--model",
    "margot",
    "--depth",
    "2",
    "--data",
    "synthetic:4-partitions",
    "--time-limit",
    "0",
)
