// Package repo has no code: its tests hold the rules of this tree that no
// linter knows, and keep the commands in the documents true.
package repo
