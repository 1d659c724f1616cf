//go:build wasip1

// Package goproc owns how an agent in Go runs as a process of its own. In a module
// there is nothing to do: the host calls its exports.
package goproc

import skep "skep/sdk/go"

// Serve does nothing in a module, whose main does not run.
func Serve(skep.Registered) {}
