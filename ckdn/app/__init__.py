"""The use cases, composed from everything below: the public Python API. Plain arguments in, values out."""
