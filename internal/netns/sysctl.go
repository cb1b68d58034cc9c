package netns

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Setting is one sysctl below net and its value. Path has slashes, as device
// names may hold dots: "net/ipv4/conf/flannel.1/rp_filter".
type Setting struct {
	Path, Value string
}

// Name is the setting in sysctl's own writing.
func (s Setting) Name() string { return strings.ReplaceAll(s.Path, "/", ".") }

// Sysctl reads a setting in the namespace.
func Sysctl(n NS, path string) (string, error) {
	var value string
	err := Do(n, func() (err error) {
		value, err = readSysctl(path)
		return err
	})
	return value, err
}

// SetSysctls writes settings in the namespace, in order, and reads each back.
// Settings outside net are the whole machine's and are refused.
func SetSysctls(n NS, settings ...Setting) error {
	return Do(n, func() error {
		for _, s := range settings {
			if err := setSysctl(s); err != nil {
				return fmt.Errorf("sysctl %s in %s: %w", s.Name(), n.Name, err)
			}
		}
		return nil
	})
}

func setSysctl(s Setting) error {
	if !strings.HasPrefix(s.Path, "net/") {
		return fmt.Errorf("is not below net: it would change the machine")
	}
	if err := os.WriteFile(filepath.Join("/proc/sys", s.Path), []byte(s.Value), 0o644); err != nil {
		return err
	}
	got, err := readSysctl(s.Path)
	if err != nil {
		return err
	}
	if got != s.Value {
		return fmt.Errorf("wrote %q, read back %q", s.Value, got)
	}
	return nil
}

func readSysctl(path string) (string, error) {
	b, err := os.ReadFile(filepath.Join("/proc/sys", path))
	if err != nil {
		return "", err
	}
	return strings.Join(strings.Fields(string(b)), " "), nil
}
