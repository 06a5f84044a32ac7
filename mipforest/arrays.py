"""Names of the array types that signatures across the package use."""

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Int32Array = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]

#: A ``scipy.sparse.csr_array`` of float64 (scipy ships no types of its own).
SparseMatrix = Any

#: Arrays of records, whose fields are attributes in compiled code.
Records = Any
