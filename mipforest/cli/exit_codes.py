"""What the exit codes of the command line mean."""

#: A feasible, verified tree; for other commands, success.
SUCCESS = 0
#: An error of mipforest itself.
BUG = 1
#: Wrong usage, or input that cannot be used.
USAGE = 2
#: Infeasible, no solution within the limits, or an answer that is not verified.
NO_ANSWER = 3
#: The solver is not available, or its licence does not suffice.
SOLVER = 4
#: The reader of standard output, such as ``head``, has gone: what a shell gives for SIGPIPE.
OUTPUT_CLOSED = 141
#: Ctrl-C before there was anything to keep.
INTERRUPTED = 130
