package campaign

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// conflists reads the conflists that the campaign names, relative to its file.
func (d *decoder) conflists(c *Campaign, campaignPath string) {
	for i := range c.Networks {
		n, where := &c.Networks[i], keyPath{"networks", i}
		if !d.good(where) {
			continue
		}
		if n.Conflist != "" {
			d.conflist(n, n.Conflist, campaignPath, where.with("conflist"))
		}
		for j, name := range n.Conflists {
			d.conflist(n, name, campaignPath, where.with("conflists").with(j))
		}
	}
}

func (d *decoder) conflist(n *Network, name, campaignPath string, where keyPath) {
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(campaignPath), path)
	}
	data, err := readFile(path)
	if err == nil && len(data) > maxFileBytes {
		err = fmt.Errorf("it has more than %d bytes", maxFileBytes)
	}
	if err != nil {
		var pathError *fs.PathError
		if errors.As(err, &pathError) {
			err = pathError.Err
		}
		d.fail(where, "paths are relative to the campaign file", "cannot read conflist %q: %v", clip(name), err)
		return
	}
	if err := checkConflist(data); err != nil {
		d.fail(where, "", "%q is not a conflist: %v", clip(name), err)
		return
	}
	n.Contents = append(n.Contents, data)
}

// checkConflist looks for what the CNI specification asks of every network
// configuration list (SPEC.md, section 1); the plugins judge the rest.
func checkConflist(data []byte) error {
	var list struct {
		CNIVersion string `json:"cniVersion"`
		Name       string `json:"name"`
		Type       string `json:"type"`
		Plugins    []struct {
			Type string `json:"type"`
		} `json:"plugins"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	switch {
	case list.Type != "" && list.Plugins == nil:
		return errors.New(`it is a single plugin's configuration; put it into "plugins": [ … ]`)
	case list.CNIVersion == "":
		return errors.New(`"cniVersion" is missing`)
	case list.Name == "":
		return errors.New(`"name" is missing`)
	case len(list.Plugins) == 0:
		return errors.New(`"plugins" is missing or empty`)
	}
	for i, p := range list.Plugins {
		if p.Type == "" {
			return fmt.Errorf(`plugins[%d] has no "type"`, i)
		}
	}
	return nil
}
