"""The images of a pod. Volcano: the pod itself."""

from __future__ import annotations

from volcano_py.api.core import Pod


def images_of(pod: Pod) -> list[str]:
    """The images of a pod's containers and volumes, with their tags."""
    spec = pod.spec
    containers = [c.image for c in (*(spec.init_containers or ()), *(spec.containers or ()))]
    return [with_tag(image) for image in (*containers, *mounted_images(pod))]


def mounted_images(pod: Pod) -> list[str]:
    """The images that are volumes."""
    return [v.image.reference for v in pod.spec.volumes or () if v.image]


def containers_of(pod: Pod) -> int:
    """How many containers a pod has, init containers included."""
    return len(pod.spec.init_containers or ()) + len(pod.spec.containers or ())


def with_tag(image: str) -> str:
    """An image without a tag means `:latest`."""
    return image if image.rfind(":") > image.rfind("/") else image + ":latest"
