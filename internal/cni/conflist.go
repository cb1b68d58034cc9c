// Package cni attaches pods to networks as a container runtime does: libcni
// runs the plugins of a CNI configuration list, in the network namespace of the
// pod's node, through package exec, which starts every process.
package cni

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/containernetworking/cni/libcni"
)

// Conflist is a checked CNI configuration list.
type Conflist struct {
	list *libcni.NetworkConfigList
}

// Name is the list's own name.
func (c *Conflist) Name() string { return c.list.Name }

// JSON is the list as it is given to libcni.
func (c *Conflist) JSON() []byte { return c.list.Bytes }

// ParseConflist checks a configuration list. source names it in errors: the
// user's file.
func ParseConflist(source string, data []byte) (*Conflist, error) {
	var shape struct {
		Type    string            `json:"type"`
		Plugins []json.RawMessage `json:"plugins"`
	}
	if err := json.Unmarshal(data, &shape); err != nil {
		return nil, fmt.Errorf("conflist %s%s: not valid JSON: %w", source, position(data, err), err)
	}
	if shape.Type != "" && shape.Plugins == nil {
		return nil, fmt.Errorf("conflist %s: is the configuration of one plugin (%s), not a list: wrap it as "+
			`{"cniVersion": "1.0.0", "name": "NAME", "plugins": [{"type": %q, …}]}`, source, shape.Type, shape.Type)
	}
	list, err := libcni.NetworkConfFromBytes(data)
	if err != nil {
		return nil, fmt.Errorf("conflist %s: %w", source, err)
	}
	if list.Name == "" {
		return nil, fmt.Errorf("conflist %s: has no name: add \"name\": \"NAME\"", source)
	}
	if len(list.Plugins) == 0 {
		return nil, fmt.Errorf("conflist %s: has no plugins", source)
	}
	return &Conflist{list}, nil
}

// position is ":line:column" of a JSON error, from 1, in bytes.
func position(data []byte, err error) string {
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	var offset int64
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &typ):
		offset = typ.Offset
	default:
		return ""
	}
	before := data[:min(int(offset), len(data))]
	line := bytes.Count(before, []byte("\n")) + 1
	return fmt.Sprintf(":%d:%d", line, max(1, len(before)-1-bytes.LastIndexByte(before, '\n')))
}

// Plugins are the names of the plugins that the list runs, delegated IPAM
// plugins included, each once.
func (c *Conflist) Plugins() []string {
	var names []string
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, p := range c.list.Plugins {
		add(p.Network.Type)
		add(p.Network.IPAM.Type)
	}
	return names
}

// ownDataDirs are the plugins that keep files in a folder of the machine
// (/var/lib/cni, /run/cni) unless dataDir names another, and where in their
// configuration dataDir is.
func ownDataDirs(plugin map[string]any) []map[string]any {
	var at []map[string]any
	switch plugin["type"] {
	case "tuning", "flannel":
		at = append(at, plugin)
	}
	if ipam, ok := plugin["ipam"].(map[string]any); ok && ipam["type"] == "host-local" {
		at = append(at, ipam)
	}
	return at
}

// WithDataDir gives the list with dir as the data folder of every plugin that
// would otherwise leave files in a folder of the machine. A dataDir that the
// list names itself is replaced as well: two labs, or two nodes of one, would
// share it.
func (c *Conflist) WithDataDir(dir string) (*Conflist, error) {
	var raw map[string]any
	d := json.NewDecoder(bytes.NewReader(c.list.Bytes))
	d.UseNumber()
	if err := d.Decode(&raw); err != nil {
		return nil, fmt.Errorf("conflist %s: %w", c.Name(), err)
	}
	plugins, _ := raw["plugins"].([]any)
	for _, p := range plugins {
		if m, ok := p.(map[string]any); ok {
			for _, at := range ownDataDirs(m) {
				at["dataDir"] = dir
			}
		}
	}
	data, err := json.MarshalIndent(raw, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("conflist %s: %w", c.Name(), err)
	}
	return ParseConflist(c.Name(), data)
}
