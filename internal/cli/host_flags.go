package cli

import "github.com/spf13/pflag"

// hostFlags are those of all commands that use machines of an inventory.
type hostFlags struct {
	inventory string
	keepGoing bool
}

func (f *hostFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.inventory, "inventory", "", "the Ansible inventory that names client, server, control plane and sink, for the testbed hosts")
	flags.BoolVar(&f.keepGoing, "keep-going", false, "if a host fails, continue with the others, and without the sink or the cluster if necessary; samples of the lost host fail")
}
