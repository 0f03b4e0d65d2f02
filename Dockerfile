# dialgym and its viewer in a container without a GPU.
#
#   docker build -t dialgym .
#   docker run --rm -p 127.0.0.1:8765:8765 -v "$PWD:/data" dialgym view --host 0.0.0.0 runs/NAME
#
# The address that it prints opens on this machine alone. What is read and written (runs/, ratings/)
# lies in the folder that is mounted at /data, which user 1000 must be able to write. Any other
# command of dialgym may take the place of `view`.
#
# On Linux the newest PyTorch comes with several gigabytes of CUDA; a build for the CPU is chosen as
# with make: --build-arg TORCH="torch==2.13.0 --index-url URL".

FROM python:3.13-slim

ARG TORCH=""
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONUNBUFFERED=1 DIALGYM_ZOO=/opt/dialgym/zoo

WORKDIR /opt/dialgym
COPY pyproject.toml constraints.txt README.md LICENSE NOTICE CHANGELOG.md envs_registry.yaml ./
COPY dialgym dialgym
COPY agents agents
COPY zoo zoo
RUN pip install ${TORCH:-$(grep '^torch==' constraints.txt)} \
    && pip install -c constraints.txt ".[agents,data,web,ui]"

RUN useradd --create-home --uid 1000 player && mkdir /data && chown player /data
USER player
WORKDIR /data
EXPOSE 8765
ENTRYPOINT ["dialgym"]
CMD ["view", "--host", "0.0.0.0"]
