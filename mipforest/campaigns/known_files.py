"""The files of data that the suites of mipforest read: where each comes from, and its checksum."""

from __future__ import annotations

from dataclasses import dataclass

#: Page of a data set of the UCI repository, by its number.
UCI_PAGE = "https://archive.ics.uci.edu/dataset/{}"


@dataclass(frozen=True, kw_only=True)
class Raw:
    """How a table is made of files as the UCI repository has them.

    Attributes
    ----------
    files
        Their names, in the order of their rows.
    target
        Position of the target column, from 0.
    drop
        Positions of columns to leave out.
    sep
        Separator; ``None`` for blanks.
    header
        Whether the first line has names.
    """

    files: tuple[str, ...]
    target: int
    drop: tuple[int, ...] = ()
    sep: str | None = ","
    header: bool = False


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """A file of data that a suite reads.

    Attributes
    ----------
    checksum
        That of the file that the results of the documentation were computed with; see
        :func:`~mipforest.campaigns.data_files.checksum`.
    about
        What it is, in words.
    bundled
        The table that scikit-learn has, and the labels of its classes; ``None`` where it has none.
    uci, raw
        Number of the data set in the UCI repository, and how the table is made of its files.
    openml
        Number of the data set at OpenML.
    """

    checksum: str
    about: str
    bundled: tuple[str, tuple[str, ...]] | None = None
    uci: int | None = None
    raw: Raw | None = None
    openml: int | None = None

    @property
    def origin(self) -> str:
        """Say where it comes from, and what can be done to have it."""
        ways = []
        if self.raw is not None and self.uci is not None:
            files = " and ".join(self.raw.files)
            ways.append(f"put {files} of {UCI_PAGE.format(self.uci)} into a folder, and give it with --uci")
        elif self.uci is not None:
            ways.append(f"make it of {UCI_PAGE.format(self.uci)}")
        if self.openml is not None:
            ways.append(f"fetch it from openml:{self.openml} with --openml")
        return f"{self.about}; {', or '.join(ways) or 'it is in no collection that is known here'}"


#: By name. A file without ``raw`` is coded otherwise than in its collection.
KNOWN = {
    "airfoil.csv": DataFile(
        checksum="10e441b2b02861a1",
        about="Airfoil Self-Noise, 1503 rows",
        uci=291,
        raw=Raw(files=("airfoil_self_noise.dat",), target=5, sep=None),
    ),
    "balance_scale.csv": DataFile(
        checksum="61980f81d73cf53b",
        about="Balance Scale, 625 rows",
        uci=12,
        raw=Raw(files=("balance-scale.data",), target=0),
        openml=11,
    ),
    "banknote.csv": DataFile(
        checksum="ce7075ae9a4c2f1c",
        about="Banknote Authentication, 1372 rows",
        uci=267,
        raw=Raw(files=("data_banknote_authentication.txt",), target=4),
        openml=1462,
    ),
    "breast_cancer_diagnostic.csv": DataFile(
        checksum="32f40662f440833a",
        about="Breast Cancer Wisconsin (Diagnostic), 569 rows",
        bundled=("breast_cancer", ("M", "B")),
        uci=17,
        raw=Raw(files=("wdbc.data",), target=1, drop=(0,)),
        openml=1510,
    ),
    "breast_cancer_wisconsin.csv": DataFile(
        checksum="bda9ff3a72948cdd",
        about="Breast Cancer Wisconsin (Original), 683 rows without missing values",
        uci=15,
        raw=Raw(files=("breast-cancer-wisconsin.data",), target=10, drop=(0,)),
        openml=15,
    ),
    "car_evaluation.csv": DataFile(
        checksum="445fec0f011c7ab0", about="Car Evaluation, all levels one-hot, 1728 rows", uci=19
    ),
    "cleveland.csv": DataFile(
        checksum="5b37c1698ee5a485",
        about="Heart Disease, Cleveland, 297 rows without missing values",
        uci=45,
        raw=Raw(files=("processed.cleveland.data",), target=13),
    ),
    "climate_model.csv": DataFile(
        checksum="0cd2f2cc9c8554c8",
        about="Climate Model Simulation Crashes, 540 rows",
        uci=252,
        raw=Raw(files=("pop_failures.dat",), target=20, drop=(0, 1), sep=None, header=True),
        openml=1467,
    ),
    "concrete_flow.csv": DataFile(
        checksum="ff1b96c73f23dd74",
        about="Concrete Slump Test, target flow, 103 rows",
        uci=182,
        raw=Raw(files=("slump_test.data",), target=9, drop=(0, 8, 10), header=True),
    ),
    "concrete_slump.csv": DataFile(
        checksum="e7e74d1dc46baedc",
        about="Concrete Slump Test, target slump, 103 rows",
        uci=182,
        raw=Raw(files=("slump_test.data",), target=8, drop=(0, 9, 10), header=True),
    ),
    "concrete_slump_strength.csv": DataFile(
        checksum="3c4dc7e37b662ad7",
        about="Concrete Slump Test, target strength, 103 rows",
        uci=182,
        raw=Raw(files=("slump_test.data",), target=10, drop=(0, 8, 9), header=True),
    ),
    "diabetes.csv": DataFile(
        checksum="53fd1fea9302f76c", about="Pima Indians Diabetes, 768 rows, zeros kept", openml=37
    ),
    "german.csv": DataFile(
        checksum="423b07994bd5a184",
        about="Statlog (German Credit), 20 columns coded by whole numbers, 1000 rows",
        uci=144,
    ),
    "german_onehot.csv": DataFile(
        checksum="94e3def988397257", about="Statlog (German Credit), all levels one-hot, 1000 rows", uci=144
    ),
    "haberman.csv": DataFile(
        checksum="95060c236e5d7807",
        about="Haberman's Survival, 306 rows",
        uci=43,
        raw=Raw(files=("haberman.data",), target=3),
        openml=43,
    ),
    "heart.csv": DataFile(
        checksum="52c22254f301d9a6", about="Statlog (Heart), 270 rows, target 0 and 1", uci=145
    ),
    "housing.csv": DataFile(checksum="7087d93c8100fd2b", about="Boston Housing, 506 rows", openml=531),
    "indian_liver.csv": DataFile(
        checksum="c3f9bfa80cdf12d0",
        about="ILPD (Indian Liver Patient), 579 rows without missing values",
        uci=225,
    ),
    "ionosphere.csv": DataFile(
        checksum="6d605cfa65e1b363",
        about="Ionosphere, 351 rows",
        uci=52,
        raw=Raw(files=("ionosphere.data",), target=34),
        openml=59,
    ),
    "parkinsons.csv": DataFile(
        checksum="17e6fe07ccda58f2",
        about="Parkinsons, 195 rows",
        uci=174,
        raw=Raw(files=("parkinsons.data",), target=17, drop=(0,), header=True),
        openml=1488,
    ),
    "sonar.csv": DataFile(
        checksum="d9de66291f08d119",
        about="Connectionist Bench (Sonar, Mines vs. Rocks), 208 rows",
        uci=151,
        raw=Raw(files=("sonar.all-data",), target=60),
        openml=40,
    ),
    "spambase.csv": DataFile(
        checksum="52e8b761ae1b74ee",
        about="Spambase, 4601 rows",
        uci=94,
        raw=Raw(files=("spambase.data",), target=57),
        openml=44,
    ),
    "spectf.csv": DataFile(
        checksum="da80ec3063aec54b",
        about="SPECTF Heart, both parts, 267 rows",
        uci=96,
        raw=Raw(files=("SPECTF.train", "SPECTF.test"), target=0),
    ),
    "tic_tac_toe.csv": DataFile(
        checksum="c2ef401aeb406ce2",
        about="Tic-Tac-Toe Endgame, three columns of 0 and 1 for each square, 958 rows",
        uci=101,
    ),
    "tic_tac_toe_margot18.csv": DataFile(
        checksum="1db76ef0b3f31e82",
        about="Tic-Tac-Toe Endgame, two columns of 0 and 1 for each square, 958 rows",
        uci=101,
    ),
    "transfusion.csv": DataFile(
        checksum="4d7a3d1d5523ef8a",
        about="Blood Transfusion Service Center, 748 rows",
        uci=176,
        raw=Raw(files=("transfusion.data",), target=4, header=True),
        openml=1464,
    ),
    "wholesale.csv": DataFile(
        checksum="608de8bd0bd2dda9",
        about="Wholesale customers, target Channel, 440 rows",
        uci=292,
        raw=Raw(files=("Wholesale customers data.csv",), target=0, header=True),
    ),
    "wine.csv": DataFile(
        checksum="375b58f789e702d9",
        about="Wine, 178 rows",
        bundled=("wine", ("1", "2", "3")),
        uci=109,
        raw=Raw(files=("wine.data",), target=0),
        openml=187,
    ),
    "wine_quality_red.csv": DataFile(
        checksum="6e9c1f6dfc35269b",
        about="Wine Quality, red, 1599 rows",
        uci=186,
        raw=Raw(files=("winequality-red.csv",), target=11, sep=";", header=True),
    ),
    "yacht.csv": DataFile(
        checksum="70965b254980a09b",
        about="Yacht Hydrodynamics, 308 rows",
        uci=243,
        raw=Raw(files=("yacht_hydrodynamics.data",), target=6, sep=None),
    ),
}
