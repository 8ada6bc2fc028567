"""The generic engine: a loaded spec and a tool's output in, facts out. Pure: no files, processes, environment."""
