"""CustomResourceDefinitions: validation of definitions, and serving their resources."""
