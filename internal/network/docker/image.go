package docker

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/cnibench/cnibench/internal/image"
)

// pauseImage is the image of Docker's containers: a program that waits. Their network
// namespaces are the pods', in which the lab's own programs run.
const pauseImage = "cnibench.invalid/pause:1"

// writePauseImage writes the image's tar, with the folder dir for its program.
func writePauseImage(w io.Writer, dir string) error {
	program, err := pauseProgram(runtime.GOARCH)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "pause")
	if err := os.WriteFile(path, program, 0o755); err != nil {
		return err
	}
	_, err = image.Write(w, image.Spec{Name: pauseImage, Binary: path})
	return err
}

// pauseProgram is a static program for Linux that does nothing until it is killed: an
// ELF header, one segment and a system call in a loop.
func pauseProgram(architecture string) ([]byte, error) {
	const (
		base   = 0x400000
		header = 64 + 56 // of the file, of the segment
	)
	var machine elf.Machine
	var code []byte
	switch architecture {
	case "amd64":
		machine = elf.EM_X86_64
		code = []byte{
			0xb8, 34, 0, 0, 0, // mov eax, pause
			0x0f, 0x05, // syscall
			0xeb, 0xf7, // jmp to the start
		}
	case "arm64":
		machine = elf.EM_AARCH64
		for _, instruction := range []uint32{
			0xd2800000, 0xd2800001, 0xd2800002, 0xd2800003, 0xd2800004, // mov x0 to x4, 0
			0xd2800928, // mov x8, ppoll
			0xd4000001, // svc 0
			0x17fffff9, // b to the start
		} {
			code = binary.LittleEndian.AppendUint32(code, instruction)
		}
	default:
		return nil, fmt.Errorf("no container image for %s: Docker's real networks are for amd64 and arm64", architecture)
	}
	size := uint64(header + len(code))
	ident := [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)}
	var b bytes.Buffer
	for _, part := range []any{
		elf.Header64{
			Ident: ident, Type: uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT),
			Entry: base + header, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1,
		},
		elf.Prog64{
			Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: base, Paddr: base, Filesz: size, Memsz: size, Align: 0x1000,
		},
		code,
	} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}
