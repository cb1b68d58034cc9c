//go:build !amd64

package main

import "errors"

func stepThrough(int, int, int, moves) (int, int64, error) {
	return 0, 0, errors.New("unsupported: single steps are read on amd64 alone")
}
