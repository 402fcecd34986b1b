"""OpenAPI documents of built-in and custom resources."""
