# One image, several programs: volcano-py scheduler | controller-manager | …, and vcctl.
FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY crds crds
COPY conf conf
COPY volcano_py volcano_py
RUN python -m venv /opt/volcano && /opt/volcano/bin/pip install --no-cache-dir '.[fast,sandbox]' \
    && /opt/volcano/bin/python -m compileall -q /opt/volcano/lib

FROM python:3.13-slim
LABEL org.opencontainers.image.title="volcano-py" org.opencontainers.image.licenses="Apache-2.0"
RUN useradd --uid 65532 --create-home --shell /usr/sbin/nologin volcano
COPY --from=build /opt/volcano /opt/volcano
ENV PATH=/opt/volcano/bin:$PATH
USER 65532
ENTRYPOINT ["volcano-py"]
CMD ["--help"]
