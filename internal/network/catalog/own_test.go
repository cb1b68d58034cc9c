package catalog

import "testing"

// This program is a CNI plugin only where a runtime calls it by a plugin's name.
func TestRunAsPluginTellsPeopleFromRuntimes(t *testing.T) {
	for _, c := range []struct {
		argv0 string
		env   []string
	}{
		{"/usr/bin/cnibench", []string{"CNI_COMMAND=ADD"}},
		{"/run/x/cnibench-calico", nil},
	} {
		if handled, _ := RunAsPlugin(c.argv0, c.env); handled {
			t.Errorf("%s with %v was taken for a plugin", c.argv0, c.env)
		}
	}
}
