"""The extension points of a session: for each a method `add_…` that a plugin calls, and a method that returns the
combined result of all plugins.

The docstring of each `add_…` method has four parts after its first sentence, from which the reference page is
generated: `Called`, `Combination`, `Flag` and `On error`. Volcano: the AddXFn methods and session_plugins.go.

Each module adds the points of one subject to the class of the module before it, from `table` to `orders`: one line of
classes, which a compiler can lay out (see docs/performance.md).
"""
