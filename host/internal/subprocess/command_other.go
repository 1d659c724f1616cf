//go:build !linux

package subprocess

import (
	"os"
	"time"
)

// Running is never made.
type Running struct{ Input, Output *os.File }

// Start does nothing here.
func Start([]string, Line) (*Running, error) { return nil, errCommand }

// Done is never called.
func (r *Running) Done() <-chan struct{} { return nil }

// Ended is never called.
func (r *Running) Ended() string { return "" }

// LastWords is never called.
func (r *Running) LastWords() string { return "" }

// Close is never called.
func (r *Running) Close(time.Duration) error { return nil }
