"""Client of the dividend data service: `Client` waits, `AsyncClient` is awaited."""

from . import errors, models
from .changes import Change, Notice
from .client import AsyncClient, Client
from .errors import BrokenAnswer, DdsError, Refused, Unreachable
from .files import Files
from .frame import to_dataframe
from .pages import AsyncPages, Pages
from .retry import Retry
from .version import VERSION as __version__

__all__ = [
    "AsyncClient",
    "AsyncPages",
    "BrokenAnswer",
    "Change",
    "Client",
    "DdsError",
    "Files",
    "Notice",
    "Pages",
    "Refused",
    "Retry",
    "Unreachable",
    "__version__",
    "errors",
    "models",
    "to_dataframe",
]
