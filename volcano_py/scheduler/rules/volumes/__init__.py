"""Rules about the volumes of a pod."""
