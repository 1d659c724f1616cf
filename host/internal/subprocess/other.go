//go:build !linux

package subprocess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/hashicorp/go-plugin/runner"
)

var errLinux = errors.New("exec: needs Linux; build the agent as a Wasm module here")

var errCommand = errors.New("commands are started on Linux alone; reach the server by its url")

// Exec does nothing here.
func Exec(_ []string, stderr io.Writer) int {
	fmt.Fprintln(stderr, "skep:", errLinux)
	return 1
}

type image struct {
	file   *os.File
	digest string
}

func newImage([]byte) (*image, error) { return nil, errLinux }

func (i *image) close() error { return nil }

// guarded is never made.
type guarded struct {
	runner.Runner
	spec spec
	done chan struct{}
}

func newGuarded([]string, spec, *os.File) *guarded { return nil }

func (g *guarded) within([]string) runner.Runner { return g }

func (g *guarded) ended() string { return "" }

func (g *guarded) blame(string) {}

func (g *guarded) tooBig() bool { return false }

func (g *guarded) code() int { return 0 }

func (g *guarded) memory() int64 { return 0 }

func (g *guarded) Kill(context.Context) error { return nil }
