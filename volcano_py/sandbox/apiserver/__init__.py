"""kube-apiserver in Python. Each subpackage imports only those below it (import contract in pyproject.toml):

assembly        new_api, new_server
http            HTTP server, routing, discovery, streaming, audit log
openapi         OpenAPI v2 and v3 documents
apiextensions   CustomResourceDefinitions
admission       webhooks, policies, LimitRanges, ResourceQuotas, namespaces
endpoints       verbs and subresources of resources
auth            authentication, authorization, impersonation, RBAC
printers        Tables
registry        resources, their strategies, and the state of the server
apply           patches, field ownership, server-side apply
cel             the CEL of validation rules and policies
serializer      request bodies, protobuf, content negotiation
schema          types of built-in kinds, structural schemas of custom resources
storage         objects in memory, in revisions, and in a data folder
apimachinery    Status errors, metadata, quantities, selectors
"""
