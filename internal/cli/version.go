package cli

import "runtime/debug"

// linkedVersion is set by the linker: -ldflags "-X …/internal/cli.linkedVersion=v1.2.3".
var linkedVersion string

// version is this program's version: the linker's, or the module's, or "devel".
func version() string {
	if linkedVersion != "" {
		return linkedVersion
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
