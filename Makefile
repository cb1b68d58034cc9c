# What people and .ci/run call. `make help` lists it.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Pure Go everywhere: no C compiler is needed, and every build shares one cache.
export CGO_ENABLED := 0

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

.PHONY: help run test test-all test-vm quick build image image-tools lint fmt tools cluster-binaries bench-lab bench-agreement bench-traffic bench-probes bench-null bench-conditions bench-repeat bench-variance bench-savings bench-instructions bench-ladders bench-services bench-real bench-probe-cost bpf web fuzz survive supply-chain dist dist-test clean site tour race fresh

## help: this list
help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

## run: build, install what is missing, and measure examples/quickstart.yaml in the lab; RUN_FLAGS are for cnibench run
run: build
	@scripts/install-deps.sh run
	bin/cnibench run examples/quickstart.yaml $(RUN_FLAGS)

## test: install and build what the tests need, run all that this machine can run, say what was skipped and why
test:
	@scripts/install-deps.sh test || echo "make test: some packages are missing; tests that need them are skipped, or fail in CI"
	@scripts/test.sh

## test-all: the same with what takes long and is left out of make test
test-all:
	@CNIBENCH_ALL=1 $(MAKE) test

## test-vm: of make test-all, what runs under Debian's stock kernel, and that of its backports, in qemu: networks that this kernel cannot build, counted instructions; half an hour to an hour
test-vm:
	@scripts/install-deps.sh test || echo "make test-vm: some packages are missing; tests that need them are skipped, or fail in CI"
	@go build -o bin/testsummary ./internal/repo/testsummary
	@CNIBENCH_ALL=1 go test -count=1 -p 1 -timeout 2h -run InVM -json ./internal/labtest/vm ./internal/testbed/lab ./experiments/instructions 2>&1 | bin/testsummary

## quick: the tests that need nothing, in under a minute
# -trimpath lets a new clone use what was built in another folder; vet has run, and test
# would run it once more.
quick:
	go vet -trimpath ./...
	CNIBENCH_QUICK=1 go test -short -trimpath -vet=off ./...

## build: bin/cnibench
build:
	go build -trimpath -buildvcs=false -ldflags '-X github.com/cnibench/cnibench/internal/cli.linkedVersion=$(VERSION)' -o bin/cnibench .

## image: bin/cnibench-image.tar, the container image of bin/cnibench, made without Docker
image: build
	bin/cnibench image --to bin/cnibench-image.tar

## image-tools: bin/cnibench-tools-image.tar, the same with the published tools as `make tools` installs them
image-tools: build
	bin/cnibench image --tools --to bin/cnibench-tools-image.tar

## lint: golangci-lint with the rules of .golangci.yml
lint:
	go run $(GOLANGCI_LINT) run --allow-parallel-runners

## fuzz: run every fuzz target of the tree for FUZZTIME (10m), one after the other
fuzz:
	@scripts/fuzz.sh all

## survive: kill what runs N times (1000) at random moments, and check that nothing is lost or left; needs root; SEED repeats, FOR bounds the seconds, BESIDE is how many at the same time (3)
survive:
	@scripts/survive.sh -n $(or $(N),1000) $(if $(SEED),-seed $(SEED)) $(if $(FOR),-for $(FOR)) $(if $(BESIDE),-beside $(BESIDE))

## race: the tests under the race detector, which needs a C compiler; 25 minutes, as root an hour
race:
	@scripts/race.sh

## fresh: as root, make quick and a short make run in a clean Debian root with empty caches; scripts/fresh.sh -full has make test too
fresh:
	@scripts/fresh.sh

## supply-chain: licences and SBOM of what is linked, two builds with one hash, known vulnerabilities
supply-chain:
	@scripts/supply-chain.sh

## fmt: gofmt every Go file
fmt:
	gofmt -w $$(git ls-files '*.go')

## tools: install the published tools that workloads can drive (iperf3, netperf, sockperf, redis, wrk, nginx, MPI with its benchmarks)
tools:
	sh scripts/install-tools.sh
	@sh scripts/build-hpcc.sh || echo "make tools: without hpcc.mpich, mpi_hpcc under MPICH is unsupported"

## cluster-binaries: build what `cnibench lab up --kubernetes` starts, into the cache of the user; minutes, once
cluster-binaries:
	@scripts/cluster-binaries.sh

## bench-lab: how fast pods come up and go, beside Mininet
bench-lab:
	go run ./experiments/lab

## bench-agreement: the lab's networks beside the same in the lab's Kubernetes; a quarter of an hour
bench-agreement:
	go run ./experiments/agreement

## bench-traffic: the native engine beside iperf3, netperf and sockperf
bench-traffic:
	go run ./experiments/traffic

## bench-null: ten campaigns of networks against themselves; about ten minutes
bench-null:
	go run ./experiments/null

## bench-conditions: what each controlled condition saves: seconds until round trips and streams are known to ± 2 %; about six minutes
bench-conditions:
	go run ./experiments/conditions

## bench-repeat: five quickstarts in a row, each two compared; about ten minutes
bench-repeat:
	go run ./experiments/repeat

## bench-variance: what the noise of results/latest consists of
bench-variance:
	go run ./experiments/variance results/latest

## bench-savings: what blocks and stopping save, from a recorded run
bench-savings:
	go run ./experiments/savings

## bench-probes: what the probes themselves cost
bench-probes:
	go run ./experiments/probes

## bench-instructions: what each network costs in instructions, counted in qemu, into docs/instructions.md
bench-instructions:
	go run ./experiments/instructions -o docs/instructions.md

## bench-real: what real networks cost in instructions beside their models, counted in qemu, for docs/real.md; an hour and a half
bench-real:
	go run ./experiments/instructions -real
	go run ./experiments/instructions -real -backports

## bench-services: what a datagram to one of up to 10,000 services costs in instructions, counted in qemu, into docs/service-instructions.md
bench-services:
	go run ./experiments/instructions -services -samples 5 -o docs/service-instructions.md

## bench-ladders: what each step up to some networks costs in instructions, counted in qemu, into docs/ladders.md
bench-ladders:
	go run ./experiments/instructions -ladders flannel/vxlan,calico/direct-policy,canal,kube-router/policy,cilium/native-policy -packets 400 -o docs/ladders.md

## bench-probe-cost: what the probes themselves cost of throughput, in instructions counted in qemu, into docs/probes.md
bench-probe-cost:
	go run ./experiments/instructions -probes -o docs/probes.md

## bpf: compile the eBPF programs again (needs clang-19, llvm-19 and libbpf-dev); their objects are committed
bpf: export BPF2GO_CC := clang-19
bpf: export BPF2GO_STRIP := llvm-strip-19
bpf: export BPF2GO_CFLAGS := -O2 -Wall -Werror -mcpu=v3 -I/usr/include/$(shell uname -m)-linux-gnu
bpf:
	go generate ./bpf
	cd bpf && sha256sum *.c *.h *.o > SHA256SUMS

## web: bundle the report's script again (needs Node 20 and npm); it is committed, with the licences of what is in it
web:
	cd web && npm ci --no-audit --no-fund && npm run --silent build

## dist: what a release contains, into dist: programs, deb, rpm, apk, checksums, SBOMs, krew manifest, Homebrew formula; publishes nothing
dist:
	@scripts/dist.sh

## dist-test: build the packages twice, compare their checksums; as root, install the deb into a clean Debian root and run it up to the summary
dist-test:
	@scripts/dist-test.sh

## site: the documents as a site in dist/site, with links checked (needs Python and a package index)
site:
	@scripts/site.sh

## tour: make docs/tour.md and the summary in README.md again (needs chromium; RESULT=DIR records another quickstart)
tour: build
	go run ./internal/repo/tour $(if $(RESULT),-record $(RESULT))

## clean: remove what was built; results stay
clean:
	rm -rf bin dist
