"""Both front ends of the node rules, the session's plugins and the profiles' plugins, on the same random clusters."""
