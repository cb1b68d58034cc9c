package image

import (
	"debug/elf"
	"fmt"
)

// architecture is that of a static Linux program, in Go's words.
func architecture(binary string) (string, error) {
	f, err := elf.Open(binary)
	if err != nil {
		return "", fmt.Errorf("%s is no program for Linux (%w)\nbuild one: CGO_ENABLED=0 GOOS=linux go build -o cnibench github.com/cnibench/cnibench", binary, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return "", fmt.Errorf("%s needs shared libraries, which the image does not have\nbuild it static: CGO_ENABLED=0 go build -o cnibench github.com/cnibench/cnibench", binary)
		}
	}
	switch f.Machine {
	case elf.EM_X86_64:
		return "amd64", nil
	case elf.EM_AARCH64:
		return "arm64", nil
	case elf.EM_RISCV:
		return "riscv64", nil
	case elf.EM_S390:
		return "s390x", nil
	case elf.EM_PPC64:
		return "ppc64le", nil
	}
	return "", fmt.Errorf("%s is for %v, for which images are not made (they are for amd64, arm64, ppc64le, riscv64, s390x)", binary, f.Machine)
}
