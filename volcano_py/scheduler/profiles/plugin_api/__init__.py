"""What plugins of profiles see and call: extension points, handle, events and infos."""
