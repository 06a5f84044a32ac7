"""Data sets: loading, encoding, scaling, splitting, generating."""

from mipforest.data.dataset import Dataset
from mipforest.data.encoding import Encoding
from mipforest.data.loading import CatalogueEntry, catalogue, load
from mipforest.data.reward_scores import reward_scores
from mipforest.data.synthetic import GroundTruth, ground_truth, treatment_experiment
from mipforest.data.table import Axis
from mipforest.errors import DataError

__all__ = [
    "Axis",
    "CatalogueEntry",
    "DataError",
    "Dataset",
    "Encoding",
    "GroundTruth",
    "catalogue",
    "ground_truth",
    "load",
    "reward_scores",
    "treatment_experiment",
]
