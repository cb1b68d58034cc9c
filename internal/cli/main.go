// Package cli is the command line: one verb, one file.
package cli

import "io"

// Main runs the command line and gives the exit status: 0 fine, 1 failed, 2
// wrong usage or bad input, 3 a regression was found.
func Main(args []string, stdout, stderr io.Writer) int {
	return 2
}
