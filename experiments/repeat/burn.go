package main

import (
	"math/rand/v2"
	"runtime"
	"time"
)

// longest is the longest burst, and the longest pause, of the neighbour.
const longest = 400 * time.Millisecond

// burn lets a thread burn one CPU for bursts of 50 to 400 ms with pauses as long, so that
// it takes half of a CPU, on whichever the scheduler gives it. It goes on until stop.
func burn() (stop func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread()
		rng := rand.New(rand.NewPCG(1, 1))
		for {
			for until := time.Now().Add(span(rng)); time.Now().Before(until); {
				continue
			}
			select {
			case <-quit:
				return
			case <-time.After(span(rng)):
			}
		}
	}()
	return func() { close(quit); <-ended }
}

func span(rng *rand.Rand) time.Duration {
	const shortest = 50 * time.Millisecond
	return shortest + time.Duration(rng.Int64N(int64(longest-shortest)))
}
