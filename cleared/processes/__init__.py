"""Starting, confining and ending other programs: the kernel's walls, the fence made of them, one way to start a program
and one to end it.

It imports ``base``; what a program is for, and what it may touch, its caller says. Begin with ``program``, then with
``fences`` and ``keeper``.
"""
