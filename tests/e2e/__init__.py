"""The whole thing: sandbox, scheduler and controllers as processes, seen through the API and real kubectl."""
