# One image for web, worker, beat and migrate; docker-compose.yml says which container is which.
FROM python:3.11-slim AS packages
# base, or milvus for MEMOS_VECTOR_INDEX
ARG REQUIREMENTS=base
COPY requirements/base.txt requirements/milvus.txt /requirements/
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --disable-pip-version-check \
       --require-hashes --only-binary ":all:" --requirement "/requirements/$REQUIREMENTS.txt"

FROM python:3.11-slim
RUN useradd --system --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin memos \
    && install --directory --mode 0700 --owner memos --group memos \
       /data /data/keys /data/blobs /data/checkpoints /data/exports /data/mail /data/receipts \
       /backups /key-copies
COPY --from=packages /venv /venv
COPY . /app
WORKDIR /app
ENV PATH=/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    MALLOC_ARENA_MAX=2 \
    OPENBLAS_NUM_THREADS=1 \
    DJANGO_SETTINGS_MODULE=memos_web.settings.production \
    MEMOS_DATA_DIR=/data
USER 10001:10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=6s --start-period=60s --retries=3 CMD ["python", "deploy/healthcheck.py"]
CMD ["uvicorn", "memos_web.asgi:application", "--host", "0.0.0.0", "--port", "8000", "--ws", "none", "--no-access-log", "--no-server-header", "--timeout-graceful-shutdown", "20"]
