package main

// instructionsPerTurn is how many instructions one turn of countdown is: DEC, JNZ.
const instructionsPerTurn = 2

// countdown turns n times in a loop of known length (known_amd64.s).
//
//go:noescape
func countdown(n int64)
