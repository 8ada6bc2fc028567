"""The spec language: its types, strict reading with positions, loading, conventions."""
