"""Types of the native module. People use ``geodp.account``, ``geodp.mechanism`` and siblings."""

import os
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, final

import numpy as np
import numpy.typing as npt

__all__ = [
    "Account",
    "Accountant",
    "Bracket",
    "Claim",
    "ExactSum",
    "FederatedServer",
    "Ledger",
    "LedgerError",
    "LedgerWriter",
    "LocalNetwork",
    "Model",
    "NoiseSource",
    "Perturbation",
    "PolarState",
    "TeamWorker",
    "__version__",
    "audit_lower_bound",
    "audit_one_run",
    "audit_roc",
    "clip_rows",
    "deal",
    "delta",
    "epsilon",
    "mnist",
    "noise_multiplier",
    "sample_rate",
    "scattering",
    "steps",
    "train",
]
__version__: str

_Adjacency: TypeAlias = Literal["add-remove", "zero-out", "replace-one"]
_Method: TypeAlias = Literal["pld", "rdp"]
_Arithmetic: TypeAlias = Literal["floating-point", "exact"]
_Path: TypeAlias = str | os.PathLike[str]

class LedgerError(ValueError): ...

@final
class Bracket:
    @property
    def lower(self) -> float: ...
    @property
    def upper(self) -> float: ...
    @property
    def width(self) -> float: ...
    @property
    def adjacency(self) -> str: ...
    @property
    def reason(self) -> str | None: ...
    def __contains__(self, value: float, /) -> bool: ...
    def __float__(self) -> float: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Accountant:
    def __new__(
        cls, adjacency: _Adjacency = "add-remove", method: _Method = "pld"
    ) -> Accountant: ...
    @property
    def adjacency(self) -> str: ...
    def compose(
        self, *, sample_rate: float, noise_multiplier: float, steps: int = 1
    ) -> None: ...
    def compose_event(self, event: Mapping[str, Any], count: int = 1) -> None: ...
    def epsilon(self, delta: float) -> Bracket: ...
    def delta(self, epsilon: float) -> Bracket: ...

@final
class Claim:
    @staticmethod
    def from_json(text: str) -> Claim: ...
    @property
    def kind(self) -> str: ...
    @property
    def epsilon(self) -> Bracket: ...
    @property
    def delta(self) -> float: ...
    @property
    def adjacency(self) -> str: ...
    @property
    def arithmetic(self) -> str: ...
    @property
    def assumption(self) -> str | None: ...
    def __float__(self) -> float: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Account:
    def __new__(
        cls,
        *,
        delta: float,
        adjacency: _Adjacency = "add-remove",
        method: _Method = "pld",
        arithmetic: _Arithmetic = "floating-point",
        noise_draws: int = 0,
    ) -> Account: ...
    def charge(self, event: Mapping[str, Any], count: int = 1) -> None: ...
    def claims(self) -> list[Claim]: ...

def epsilon(
    *,
    sample_rate: float,
    noise_multiplier: float,
    steps: int,
    delta: float,
    adjacency: _Adjacency = "add-remove",
    method: _Method = "pld",
) -> Bracket: ...
def delta(
    *,
    sample_rate: float,
    noise_multiplier: float,
    steps: int,
    epsilon: float,
    adjacency: _Adjacency = "add-remove",
    method: _Method = "pld",
) -> Bracket: ...
def noise_multiplier(
    *,
    epsilon: float,
    delta: float,
    sample_rate: float,
    steps: int,
    adjacency: _Adjacency = "add-remove",
    miss: float | None = None,
) -> float: ...
def steps(
    *,
    epsilon: float,
    delta: float,
    sample_rate: float,
    noise_multiplier: float,
    adjacency: _Adjacency = "add-remove",
) -> int: ...
def sample_rate(
    *,
    epsilon: float,
    delta: float,
    noise_multiplier: float,
    steps: int,
    adjacency: _Adjacency = "add-remove",
) -> float: ...

@final
class Ledger:
    def __new__(cls, path: _Path) -> Ledger: ...
    @property
    def adjacency(self) -> str: ...
    @property
    def delta(self) -> float: ...
    @property
    def plan(self) -> str: ...
    @property
    def head(self) -> str: ...
    @property
    def steps(self) -> int: ...
    @property
    def torn(self) -> bool: ...
    @property
    def charges(self) -> list[tuple[int, dict[str, Any], int]]: ...
    def claims(self) -> list[Claim]: ...
    def verify_against(self, charges: int, head: str) -> None: ...
    def __len__(self) -> int: ...

@final
class LedgerWriter:
    @staticmethod
    def create(
        path: _Path,
        *,
        delta: float,
        plan: str,
        adjacency: _Adjacency = "add-remove",
        arithmetic: _Arithmetic = "floating-point",
        noise_draws: int = 0,
    ) -> LedgerWriter: ...
    @staticmethod
    def open(path: _Path) -> LedgerWriter: ...
    def append(self, *, step: int, event: Mapping[str, Any], count: int = 1) -> None: ...
    @property
    def head(self) -> str: ...
    def __len__(self) -> int: ...

@final
class NoiseSource:
    def __new__(cls, seed: int | None = None) -> NoiseSource: ...
    @staticmethod
    def from_key(key: bytes) -> NoiseSource: ...
    @property
    def seed(self) -> int | None: ...
    def take_step(self) -> int: ...
    def take_block(self, count: int) -> int: ...
    def poisson(self, step: int, records: int, batch: int) -> npt.NDArray[np.int64]: ...
    def normals(
        self, purpose: str, step: int, chunk: int, count: int
    ) -> npt.NDArray[np.float64]: ...

@final
class PolarState:
    def __new__(
        cls,
        squared_norm: float | None = None,
        variance: float = 0.0,
        counts: tuple[int, int, int] = ...,
        ratio_total: float = 0.0,
    ) -> PolarState: ...
    def values(self) -> tuple[float | None, float, tuple[int, int, int], float]: ...
    def __getnewargs__(self) -> tuple[float | None, float, tuple[int, int, int], float]: ...

@final
class Perturbation:
    def __new__(
        cls,
        clip_norm: float,
        noise_multiplier: float,
        batch: int,
        mechanism: str,
        beta: float | None,
        miss: float | None,
    ) -> Perturbation: ...
    def perturb(
        self,
        mean: npt.NDArray[Any],
        noise: NoiseSource,
        step: int | None = None,
        history: PolarState | None = None,
    ) -> int: ...

@final
class ExactSum:
    def __new__(cls, dim: int, clip_norm: float, rule: str = "flat") -> ExactSum: ...
    def add(self, gradients: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]: ...
    def add_units(self, units: npt.NDArray[np.int64]) -> None: ...
    def units(self) -> npt.NDArray[np.int64]: ...
    def clear(self) -> None: ...
    def release(
        self,
        perturbation: Perturbation,
        noise: NoiseSource,
        step: int | None = None,
        history: PolarState | None = None,
    ) -> tuple[npt.NDArray[np.float32], int]: ...

def clip_rows(
    gradients: npt.NDArray[Any], clip_norm: float, rule: str
) -> npt.NDArray[np.float64]: ...
def train(
    folder: str,
    config: str | None,
    observer: Callable[[str, Any], None],
    threads: int | None = None,
    team: Any = None,
) -> tuple[int, bool]: ...

@final
class TeamWorker:
    def __new__(cls, rank: int, size: int) -> TeamWorker: ...
    def handle(
        self, request: bytes, weights: npt.NDArray[np.float32] | None = None
    ) -> tuple[npt.NDArray[np.int64] | None, bytes]: ...

@final
class Model:
    @staticmethod
    def open(folder: str) -> Model: ...
    @property
    def claimed(self) -> str: ...
    def predict(
        self, inputs: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[np.float32] | None, npt.NDArray[np.float64] | None]: ...

def audit_one_run(
    train: Callable[[list[bool]], list[float]],
    canaries: int,
    delta: float,
    significance: float,
    seed: int | None = None,
) -> str: ...
def audit_lower_bound(
    canaries: int, guesses: int, correct: int, delta: float, significance: float
) -> float: ...
def audit_roc(members: list[float], non_members: list[float]) -> str: ...
def deal(
    labels: npt.NDArray[np.int64],
    clients: int,
    *,
    alpha: float | None = None,
    seed: int = 0,
) -> npt.NDArray[np.int64]: ...
def scattering(images: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]: ...
def mnist() -> tuple[
    tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]],
    tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]],
]: ...

@final
class FederatedServer:
    def __new__(
        cls,
        folder: _Path,
        params: str,
        population: int,
        weights: npt.NDArray[np.float32],
        model: str = "",
        clients: str = "",
    ) -> FederatedServer: ...
    @property
    def rounds(self) -> int: ...
    @property
    def rounds_done(self) -> int: ...
    @property
    def noise_multiplier(self) -> float | None: ...
    @property
    def clip_norm(self) -> float | None: ...
    @property
    def warnings(self) -> list[str]: ...
    def weights(self) -> npt.NDArray[np.float32]: ...
    def claim(self) -> Claim: ...
    def begin(self) -> tuple[int, npt.NDArray[np.int64], int] | None: ...
    def add(self, client: int, update: npt.NDArray[np.float32]) -> str: ...
    def finish(self) -> npt.NDArray[np.float32]: ...
    def conclude(self) -> str: ...

@final
class LocalNetwork:
    def __new__(cls, spec: str) -> LocalNetwork: ...
    def __getnewargs__(self) -> tuple[str]: ...
    @staticmethod
    def logistic(features: int, classes: int) -> LocalNetwork: ...
    @staticmethod
    def cnn() -> LocalNetwork: ...
    @property
    def dim(self) -> int: ...
    def init(self, seed: int = 0) -> npt.NDArray[np.float32]: ...
    def train(
        self,
        weights: npt.NDArray[np.float32],
        inputs: npt.NDArray[np.float32],
        labels: npt.NDArray[np.int64],
        *,
        epochs: int,
        batch: int,
        learning_rate: float,
        client: int = 0,
        bits: int = 0,
    ) -> npt.NDArray[np.float32]: ...
    def simulate(
        self,
        weights: npt.NDArray[np.float32],
        inputs: npt.NDArray[np.float32],
        labels: npt.NDArray[np.int64],
        shards: npt.NDArray[np.int64],
        params: str,
        *,
        epochs: int,
        batch: int,
        learning_rate: float,
    ) -> npt.NDArray[np.float32]: ...
    def evaluate(
        self,
        weights: npt.NDArray[np.float32],
        inputs: npt.NDArray[np.float32],
        labels: npt.NDArray[np.int64],
    ) -> tuple[float, float]: ...
