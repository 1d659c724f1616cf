//go:build !linux

package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/hashicorp/go-plugin/runner"
)

var errLinux = errors.New("exec: needs Linux; build the agent as a Wasm module here")

var errCommand = errors.New("commands are started on Linux alone; reach the server by its url")

// Exec fails: processes need Linux.
func Exec(_ []string, stderr io.Writer) int {
	fmt.Fprintln(stderr, "skep:", errLinux)
	return 1
}

type sealedProgram struct {
	file   *os.File
	digest string
}

func sealProgram([]byte) (*sealedProgram, error) { return nil, errLinux }

func checkInterpreter(Source) *startError { return &startError{reason: errLinux.Error()} }

func (i *sealedProgram) close() error { return nil }

// guardedProcess is never created.
type guardedProcess struct {
	runner.Runner
	spec spec
	done chan struct{}
}

func newGuardedProcess([]string, spec, *os.File) *guardedProcess { return nil }

func (g *guardedProcess) withEnv([]string) runner.Runner { return g }

func (g *guardedProcess) exitReason() string { return "" }

func (g *guardedProcess) setReason(string) {}

func (g *guardedProcess) killedForMemory() bool { return false }

func (g *guardedProcess) exitCode() int { return 0 }

func (g *guardedProcess) memoryUsed() int64 { return 0 }

func (g *guardedProcess) admits(net.Conn) bool { return false }

func (g *guardedProcess) Kill(context.Context) error { return nil }

// Cgroup is Linux's.
type Cgroup struct{}

// OpenCgroup fails: control groups are Linux's.
func OpenCgroup(string) (*Cgroup, error) { return &Cgroup{}, errLinux }

// Dir is empty.
func (*Cgroup) Dir() string { return "" }

// Close does nothing.
func (*Cgroup) Close() error { return nil }

func newCgroup(string, int64) error { return errLinux }

func removeCgroup(string) error { return nil }

// Confinement is one way in which processes are confined on this machine.
type Confinement struct {
	Name    string `json:"name"`
	InForce bool   `json:"in_force"`
	Detail  string `json:"detail"`
}

// Confinements fails: processes need Linux.
func Confinements(string) ([]Confinement, error) { return nil, errLinux }
