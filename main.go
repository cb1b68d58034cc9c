// Command cnibench measures what Kubernetes pod networks cost.
package main

import (
	"os"

	"github.com/cnibench/cnibench/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr))
}
