package probe

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Symbols names addresses of kernel code, from /proc/kallsyms. It is read when
// the first address is asked for, and again when one is in no function that was
// there then: programs of eBPF come and go. It may be used by many at once.
type Symbols struct {
	roots Roots

	mu     sync.Mutex
	starts []uint64 // of functions, sorted
	ends   []uint32 // where the name of each ends in names
	names  string
}

// NewSymbols makes one that has read nothing yet.
func NewSymbols(roots Roots) *Symbols { return &Symbols{roots: roots} }

// reach is how far from its start an address is still taken to be in a
// function: kallsyms has no sizes, and behind the last function come none.
const reach = 1 << 18

// ErrHidden is the error for a user without rights: all addresses are 0.
var ErrHidden = errors.New("the kernel hides its addresses (run as root, or sysctl -w kernel.kptr_restrict=0)")

// read reads the table again. mu is held.
func (s *Symbols) read() error {
	path := filepath.Join(s.roots.Proc, "kallsyms")
	raw, err := os.ReadFile(path)
	if err != nil {
		return absentf("names of kernel functions: %w", err)
	}
	type function struct {
		start uint64
		name  string
	}
	var all []function
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		if len(fields) < 3 || !strings.ContainsAny(fields[1], "tTwW") {
			continue
		}
		start, err := strconv.ParseUint(fields[0], 16, 64)
		if err != nil || start == 0 {
			continue
		}
		name := strings.Clone(fields[2])
		if len(fields) > 3 && fields[3] != "[bpf]" {
			name += " " + fields[3]
		}
		all = append(all, function{start, name})
	}
	if len(all) == 0 {
		return absentf("names of kernel functions: %s: %w", path, ErrHidden)
	}
	slices.SortStableFunc(all, func(a, b function) int {
		if a.start < b.start {
			return -1
		}
		return min(1, int(min(a.start-b.start, 1)))
	})
	// Of two names of one address the first is used.
	all = slices.CompactFunc(all, func(a, b function) bool { return a.start == b.start })
	s.starts, s.ends = make([]uint64, len(all)), make([]uint32, len(all))
	var names strings.Builder
	for i, f := range all {
		names.WriteString(f.name)
		s.starts[i], s.ends[i] = f.start, uint32(names.Len())
	}
	s.names = names.String()
	return nil
}

// Resolve names the function of each address, "" where there is none. A function
// of a module has that behind it: "nft_do_chain [nf_tables]".
func (s *Symbols) Resolve(addresses []uint64) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := false
	if s.starts == nil {
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
	i, exact := slices.BinarySearch(s.starts, address)
	if !exact {
		i--
	}
	if i < 0 || address-s.starts[i] > reach {
		return ""
	}
	begin := uint32(0)
	if i > 0 {
		begin = s.ends[i-1]
	}
	return s.names[begin:s.ends[i]]
}
