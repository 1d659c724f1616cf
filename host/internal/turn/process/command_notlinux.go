//go:build !linux

package process

import (
	"os"
	"time"
)

// Running is never created.
type Running struct{ Input, Output *os.File }

// Start fails: commands need Linux.
func Start([]string, CommandLine) (*Running, error) { return nil, errCommand }

// Done is never called.
func (r *Running) Done() <-chan struct{} { return nil }

// Ended is never called.
func (r *Running) Ended() string { return "" }

// LastOutput is never called.
func (r *Running) LastOutput() string { return "" }

// Close is never called.
func (r *Running) Close(time.Duration) error { return nil }
