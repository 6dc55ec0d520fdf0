# The server in one image. Build: docker build -t toolfault-server .
# Everything that is downloaded is pinned by hash; the second stage downloads nothing but
# requirements/server.txt, and the running container downloads nothing at all.

FROM python:3.13-slim AS wheels
WORKDIR /src
COPY requirements/build.txt requirements/
RUN python -m pip install --no-cache-dir --require-hashes -r requirements/build.txt
COPY pyproject.toml README.md CHANGELOG.md LICENSE ./
COPY collector/ collector/
COPY dashboard/ dashboard/
COPY migrations/ migrations/
RUN python -m pip wheel --no-deps --no-build-isolation --wheel-dir /wheels .

FROM python:3.13-slim
ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    XDG_DATA_HOME=/data
COPY requirements/server.txt /opt/toolfault/requirements/
RUN python -m pip install --no-cache-dir --require-hashes -r /opt/toolfault/requirements/server.txt
COPY --from=wheels /wheels/ /opt/toolfault/wheels/
RUN python -m pip install --no-cache-dir --no-deps --no-index /opt/toolfault/wheels/*.whl
RUN useradd --system --uid 10001 --no-create-home toolfault \
    && install --directory --owner toolfault --mode 0700 /data
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 8321
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8321/readyz', timeout=4)"]
ENTRYPOINT ["toolfault"]
# The address is that of the container; who reaches it is decided where its port is published.
CMD ["serve", "--host", "0.0.0.0", "--port", "8321", "--allow-public"]
