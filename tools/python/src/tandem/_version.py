"""The version of the package, which is that of Tandem."""

__version__ = "0.2.0"
