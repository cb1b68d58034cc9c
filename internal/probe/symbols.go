package probe

import (
	"bufio"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
)

// Symbols names addresses of kernel code, from /proc/kallsyms. It is read when
// the first address is asked for, and again when one is in no function that was
// there then: programs of eBPF come and go. It may be used by many at once.
type Symbols struct {
	roots Roots
	// loaded is what code the kernel has loaded; not ok if that cannot be known.
	loaded func() (code []string, ok bool)

	mu        sync.Mutex
	functions []function // by start
	names     string
	with      []string // what was loaded when they were read
}

// NewSymbols makes one that has read nothing yet.
func NewSymbols(roots Roots) *Symbols {
	return &Symbols{roots: roots, loaded: func() ([]string, bool) { return loadedCode(roots) }}
}

// loadedCode names the kernel's modules with their addresses, and its programs of eBPF.
func loadedCode(roots Roots) (code []string, ok bool) {
	modules, err := os.ReadFile(filepath.Join(roots.Proc, "modules"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a kernel without modules has no such file
		return nil, false
	}
	for line := range strings.Lines(string(modules)) {
		if fields := strings.Fields(line); len(fields) > 5 { // name size users by state address
			code = append(code, fields[0]+" "+fields[5])
		}
	}
	id := ebpf.ProgramID(0)
	for {
		if id, err = ebpf.ProgramGetNextID(id); err != nil {
			return code, errors.Is(err, os.ErrNotExist) // there is no further one
		}
		code = append(code, strconv.Itoa(int(id)))
	}
}

// reach is how far from its start an address is still taken to be in a
// function: kallsyms has no sizes, and behind the last function come none.
const reach = 1 << 18

// ErrHidden is the error for a user without rights: all addresses are 0.
var ErrHidden = errors.New("the kernel hides its addresses (run as root, or sysctl -w kernel.kptr_restrict=0)")

// function is one of the table: where it starts, and where its name begins and ends.
type function struct {
	start      uint64
	begin, end uint32
}

// read reads the table again. mu is held.
func (s *Symbols) read() error {
	path := filepath.Join(s.roots.Proc, "kallsyms")
	file, err := os.Open(path)
	if err != nil {
		return absentf("names of kernel functions: %w", err)
	}
	defer file.Close()
	var all []function
	var names strings.Builder
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		start, name, ok := parseSymbol(lines.Text())
		if !ok {
			continue
		}
		begin := names.Len()
		names.WriteString(name)
		all = append(all, function{start, uint32(begin), uint32(names.Len())})
	}
	if err := lines.Err(); err != nil {
		return absentf("names of kernel functions: %w", err)
	}
	if len(all) == 0 {
		return absentf("names of kernel functions: %s: %w", path, ErrHidden)
	}
	slices.SortStableFunc(all, func(a, b function) int { return cmp.Compare(a.start, b.start) })
	// Of two names of one address the first is used.
	all = slices.CompactFunc(all, func(a, b function) bool { return a.start == b.start })
	s.functions, s.names = slices.Clip(all), names.String()
	return nil
}

// parseSymbol takes a line of the table, "ffff000000002000 t br_forward\t[bridge]". It is not ok
// if that is no function, or has no address.
func parseSymbol(line string) (start uint64, name string, ok bool) {
	address, rest, _ := strings.Cut(line, " ")
	kind, name, _ := strings.Cut(rest, " ")
	if name == "" || !strings.ContainsAny(kind, "tTwW") {
		return 0, "", false
	}
	start, err := strconv.ParseUint(address, 16, 64)
	if err != nil || start == 0 {
		return 0, "", false
	}
	module := ""
	if i := strings.IndexAny(name, "\t "); i > 0 {
		name, module = name[:i], strings.TrimSpace(name[i:])
	}
	if module != "" && module != "[bpf]" {
		name += " " + module
	}
	return start, name, true
}

// Load reads the table if nothing has been read yet, or if the kernel has loaded or removed code
// since: a new program of eBPF can be where an old one was, or right behind another. It takes a
// tenth of a second of one CPU, so callers do it outside of windows.
func (s *Symbols) Load() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	code, ok := s.loaded()
	if s.functions != nil && ok && slices.Equal(code, s.with) {
		return nil
	}
	if err := s.read(); err != nil {
		return err
	}
	s.with = code
	return nil
}

// Resolve names the function of each address, "" where there is none. A function
// of a module has that behind it: "nft_do_chain [nf_tables]".
func (s *Symbols) Resolve(addresses []uint64) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := false
	if s.functions == nil {
		if err := s.read(); err != nil {
			return nil, err
		}
		fresh = true
	}
	names := make([]string, len(addresses))
	for i, a := range addresses {
		name := s.at(a)
		if name == "" && !fresh {
			if err := s.read(); err != nil {
				return nil, err
			}
			fresh, name = true, s.at(a)
		}
		names[i] = name
	}
	return names, nil
}

func (s *Symbols) at(address uint64) string {
	i, exact := slices.BinarySearchFunc(s.functions, address, func(f function, a uint64) int { return cmp.Compare(f.start, a) })
	if !exact {
		i--
	}
	if i < 0 || address-s.functions[i].start > reach {
		return ""
	}
	return s.names[s.functions[i].begin:s.functions[i].end]
}
