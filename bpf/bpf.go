// Package bpf has the eBPF programs of the networks that lab nodes carry out
// in eBPF, compiled ahead: the objects are committed, so that neither a build
// nor a run needs a compiler, kernel headers or the kernel's BTF. Objects are
// little-endian, as every machine is that Go's amd64, arm64, riscv64 and
// ppc64le name; this program does not build for others.
//
// The sources beside this file are Apache-2.0 OR GPL-2.0-only. After a change
// run make bpf, which needs Debian's clang-19, llvm-19 and libbpf-dev.
package bpf

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -type endpoint -type remote -type prefix -type prefix6 -type policy_key -type policy_entry Cilium cilium.c
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -type route -type prefix Calico calico.c
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel Sockmap sockmap.c
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -type service_key -type service_slot -type service_backend Service service.c
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel Nodeport nodeport.c
