"""The client's own version, as its user agent says it."""

from importlib.metadata import version

VERSION = version("dds-client")
