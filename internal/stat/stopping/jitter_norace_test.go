//go:build !race

package stopping_test

// jitter is by how many allocations two equal looks may differ.
const jitter = 0
