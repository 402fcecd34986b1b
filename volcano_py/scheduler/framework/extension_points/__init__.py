"""The extension points of a session: for each a method `add_…` that a plugin calls, and the question it answers.

The docstring of each `add_…` method has four parts after its first sentence, from which the reference page is made:
`Called`, `Combination`, `Flag` and `On error`. Volcano: the AddXFn methods and session_plugins.go.
"""
