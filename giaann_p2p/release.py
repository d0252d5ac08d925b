"""The release of this library, for modules that must not import all of it."""

RELEASE = "0.1.0"
