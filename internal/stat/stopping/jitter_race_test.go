//go:build race

package stopping_test

// jitter is by how many allocations two equal looks may differ: the race detector has pools
// forget some of what they keep, at random.
const jitter = 4
