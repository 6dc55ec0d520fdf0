# The server in one image. Build (Docker 25 or newer): docker build -t toolfault-server .
# What pip installs and what ADD fetches is pinned by hash. The base images are not: their tags
# move. Who must build the same image twice writes their digests here. The running container
# downloads nothing.

FROM python:3.13-slim AS wheels
WORKDIR /src
COPY requirements/build.txt requirements/
RUN python -m pip install --no-cache-dir --require-hashes -r requirements/build.txt
COPY pyproject.toml README.md CHANGELOG.md LICENSE ./
COPY collector/ collector/
COPY dashboard/ dashboard/
COPY docs/ docs/
COPY migrations/ migrations/
RUN python -m pip wheel --no-deps --no-build-isolation --wheel-dir /wheels .

# Debian's SQLite can corrupt a database (the WAL-reset bug, fixed in 3.51.3). This one has the
# options of Debian's that are not on by default and that a server may rely on.
FROM python:3.13 AS sqlite
ADD --checksum=sha256:1e71ddf93849c6a6ecf58b827c0692073d2dd7ee40196158068f7b29f422e87d \
    https://sqlite.org/2026/sqlite-amalgamation-3530400.zip /src/sqlite.zip
RUN python -m zipfile -e /src/sqlite.zip /src \
    && gcc -O2 -fPIC -shared -Wl,-soname,libsqlite3.so.0 \
        -DSQLITE_SECURE_DELETE -DSQLITE_ENABLE_MATH_FUNCTIONS -DSQLITE_MAX_VARIABLE_NUMBER=250000 \
        -o /src/libsqlite3.so.0 /src/sqlite-amalgamation-3530400/sqlite3.c -lm

FROM python:3.13-slim
ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    LD_LIBRARY_PATH=/opt/toolfault/lib \
    XDG_DATA_HOME=/data
COPY requirements/server.txt requirements/clickhouse.txt /opt/toolfault/requirements/
RUN python -m pip install --no-cache-dir --require-hashes -r /opt/toolfault/requirements/server.txt \
    -r /opt/toolfault/requirements/clickhouse.txt
COPY --from=wheels /wheels/ /opt/toolfault/wheels/
RUN python -m pip install --no-cache-dir --no-deps --no-index /opt/toolfault/wheels/*.whl
COPY --from=sqlite /src/libsqlite3.so.0 /opt/toolfault/lib/
# The build fails, and says why, if Python runs on an SQLite with that bug all the same.
RUN python -c "from toolfault_collector.storage.database.wal import advice_on_version; raise SystemExit(advice_on_version())"
RUN useradd --system --uid 10001 --no-create-home toolfault \
    && install --directory --owner toolfault --mode 0700 /data
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 8321
STOPSIGNAL SIGTERM
# Whether the process answers, not whether its database does (/readyz): no restart mends that.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8321/healthz', timeout=4)"]
ENTRYPOINT ["toolfault"]
# The address is that of the container; who reaches it is decided where its port is published.
CMD ["serve", "--host", "0.0.0.0", "--port", "8321", "--allow-public"]
