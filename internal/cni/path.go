package cni

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// UsualDirs are where packages put plugins: Debian, the CNI project itself and
// Kubernetes, Fedora.
func UsualDirs() []string {
	return []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}
}

// SearchPath is where plugins are searched, in order: the folders of
// --cni-path, those of $CNI_PATH, the usual ones.
func SearchPath(flag string) []string {
	var dirs []string
	for _, list := range []string{flag, os.Getenv("CNI_PATH")} {
		for _, dir := range filepath.SplitList(list) {
			if dir != "" {
				dirs = append(dirs, dir)
			}
		}
	}
	return append(dirs, UsualDirs()...)
}

// MissingPluginError says that a plugin is in none of the folders.
type MissingPluginError struct {
	Plugin string
	Dirs   []string
}

func (e *MissingPluginError) Error() string {
	cure := "put it in one of them, or name its folder with --cni-path"
	if slices.Contains(debianPlugins(), e.Plugin) {
		cure = "apt-get install containernetworking-plugins, or name its folder with --cni-path"
	}
	return fmt.Sprintf("CNI plugin %q is not in %s: %s", e.Plugin, strings.Join(e.Dirs, ", "), cure)
}

// debianPlugins are those of Debian's package containernetworking-plugins.
func debianPlugins() []string {
	return []string{"bandwidth", "bridge", "dhcp", "firewall", "host-device", "host-local", "ipvlan",
		"loopback", "macvlan", "portmap", "ptp", "sbr", "static", "tuning", "vlan", "vrf"}
}

// Find gives the plugin's binary; the error is a *MissingPluginError.
func Find(plugin string, dirs []string) (string, error) {
	if plugin == "" || strings.ContainsRune(plugin, filepath.Separator) {
		return "", fmt.Errorf("CNI plugin %q: a plugin is named without a folder", plugin)
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, plugin)
		if fi, err := os.Stat(path); err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", &MissingPluginError{Plugin: plugin, Dirs: dirs}
}
