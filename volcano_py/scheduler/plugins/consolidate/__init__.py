"""The plugin consolidate: moves pods so that a waiting gang starts. Not in Volcano."""
