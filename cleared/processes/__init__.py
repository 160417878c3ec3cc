"""Starting, confining and ending other programs: the kernel's walls, the fence made of them, one way to start and one
to end.

It imports ``base``; what a program is for, and what it may touch, its caller says. Begin with
``fences`` and ``fenced_start``.
"""
