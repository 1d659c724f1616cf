package cli

import (
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"skep/host/internal/bundle"
	"skep/host/internal/definition/config"
	"skep/host/internal/diagnosis"
)

// Env is the world a command line runs in.
type Env struct {
	Args      []string // without the program's name
	Stdin     io.Reader
	Stdout    io.Writer
	Stderr    io.Writer
	LookupEnv func(name string) (string, bool)
	// StdinTerminal and the others are true for a terminal.
	StdinTerminal, StdoutTerminal, StderrTerminal bool
	// Width and Height are the terminal's, in columns and lines; 0 is unknown.
	Width, Height int
	// Signals stop the command: gracefully the first time, at once the second. It may be nil.
	Signals <-chan os.Signal
	// Hangups begins to catch SIGHUP, which otherwise ends the program, until
	// ignore is called. It may be nil.
	Hangups func() (signals <-chan os.Signal, ignore func())
	// Every ticks until stop is called. It may be nil: then long work shows no
	// progress.
	Every func(d time.Duration) (ticks <-chan time.Time, stop func())
	// Self is the program's own file.
	Self string
	// Plugins holds bundled modules, beside the program; they win against the modules of
	// Bundled, which are in the program. Bundled may be nil.
	Plugins string
	Bundled config.Bundle
	// Cache keeps compiled modules. Where it is empty or cannot be made, they
	// are kept with the data they belong to.
	Cache string
	// Machine is what doctor looks at; nil is this machine. Tests set it.
	Machine *diagnosis.Machine
}

// OS is the world of this process.
func OS(signals <-chan os.Signal) Env {
	e := Env{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		LookupEnv: os.LookupEnv, Signals: signals, Hangups: hangups, Every: every, Bundled: bundle.Embedded(),
	}
	_, _, e.StdinTerminal = terminalSize(os.Stdin)
	_, _, e.StdoutTerminal = terminalSize(os.Stdout)
	e.Width, e.Height, e.StderrTerminal = terminalSize(os.Stderr)
	e.Self = os.Args[0] // what others bring is compiled by a child or not at all
	if exe, err := os.Executable(); err == nil {
		e.Self = exe
		e.Plugins = filepath.Join(filepath.Dir(exe), "plugins")
	}
	if dir, err := os.UserCacheDir(); err == nil {
		e.Cache = filepath.Join(dir, "skep")
	}
	return e
}

func hangups() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}

func every(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTicker(d)
	return t.C, t.Stop
}

// get returns a variable, empty if it is not set.
func (e Env) get(name string) string {
	if e.LookupEnv == nil {
		return ""
	}
	value, _ := e.LookupEnv(name)
	return value
}
