# The images of `cnibench image`, for those who build with Docker (BuildKit). The
# program is built before: make build.
#
#   docker build -t cnibench .
#   docker build -t cnibench-tools --target tools .
#
# No test builds this file: `make image` and `make image-tools` need no Docker.

FROM debian:12-slim AS tools
# netperf is in the component non-free.
RUN sed -i 's/^Components: main$/Components: main non-free/' /etc/apt/sources.list.d/debian.sources \
 && apt-get update \
 && apt-get install -y --no-install-recommends iperf3 netperf sockperf redis-server redis-tools wrk nginx-light \
      openmpi-bin mpich hpcc netpipe-openmpi netpipe-mpich2 \
 && rm -rf /var/lib/apt/lists/*
COPY bin/cnibench /cnibench
USER 65532:65532
ENTRYPOINT ["/cnibench"]
CMD ["agent", "--wait"]

FROM debian:12-slim AS folders

FROM scratch
# Agents keep the files of their samples there.
COPY --from=folders /tmp /tmp
COPY bin/cnibench /cnibench
USER 65532:65532
ENTRYPOINT ["/cnibench"]
CMD ["agent", "--wait"]
