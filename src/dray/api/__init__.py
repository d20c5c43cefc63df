"""The resource.k8s.io API as values: types, versions, defaults, and the small value languages in them.

Nothing here decides, validates or does I/O. Other packages import from the modules, not from here.
"""
