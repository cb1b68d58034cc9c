// Command site prepares the documents of this tree for a site: `make site` builds it.
//
//	site TREE FOLDER
//
// It writes FOLDER/pages with README.md, every document and every file that one links
// to, at the same paths, TREE/tools/site/style.css, and FOLDER/mkdocs.yml: TREE/tools/site/mkdocs.yml with the
// navigation that README.md's index gives.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: site TREE FOLDER")
		os.Exit(2)
	}
	if err := prepare(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}
