# One image, several programs: volcano-py scheduler | controller-manager | webhook-manager | …, and vcctl.
# tests/image performs these steps without docker.
FROM debian:12-slim AS build
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --no-install-recommends -y python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY crds crds
COPY conf conf
COPY benchmarks benchmarks
COPY volcano_py volcano_py
# fast: compiled vector operations; dra: the CEL library, which claims with device selectors need. With one of them the
# image is above 200 MB.
ARG EXTRAS=
RUN python3 -m venv /opt/volcano && /opt/volcano/bin/pip install --no-cache-dir ".${EXTRAS:+[${EXTRAS}]}"
RUN /opt/volcano/bin/pip uninstall -y -q setuptools pip \
    && find /opt/volcano -depth -type d '(' -name tests -o -name __pycache__ ')' -exec rm -rf '{}' + \
    && /opt/volcano/bin/python -m compileall -q /opt/volcano/lib \
    && chmod -R a-w,a+rX /opt/volcano

# No shell, no package manager; its user is 65532.
FROM gcr.io/distroless/python3-debian12:nonroot
LABEL org.opencontainers.image.title="volcano-py" org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/volcano /opt/volcano
ENV PATH=/opt/volcano/bin PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["volcano-py"]
CMD ["--help"]
