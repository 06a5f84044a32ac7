"""The cases of the solver conformance suite (:mod:`mipforest.testing.solver_conformance`)."""
