package cli

import (
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Env is the world a command line runs in.
type Env struct {
	Args      []string // without the program's name
	Stdin     io.Reader
	Stdout    io.Writer
	Stderr    io.Writer
	LookupEnv func(name string) (string, bool)
	// StdinTerminal and its like tell whether a person is at the other end.
	StdinTerminal, StdoutTerminal, StderrTerminal bool
	// Width is that of the terminal in columns, 0 if it is not known.
	Width int
	// Signals asks the command to stop: in order the first time, at once the
	// second. It may be nil.
	Signals <-chan os.Signal
	// Hangups begins to catch SIGHUP, which otherwise ends the program, until
	// ignore is called. It may be nil.
	Hangups func() (signals <-chan os.Signal, ignore func())
	// Every gives the time again and again until stop is called. It may be nil:
	// then nothing shows that work goes on.
	Every func(d time.Duration) (ticks <-chan time.Time, stop func())
	// Self is the program's own file.
	Self string
	// Plugins holds the bundled modules.
	Plugins string
	// Cache keeps compiled modules. Where it is empty or cannot be made, they
	// are kept with the data they belong to.
	Cache string
}

// OS is the world of this process.
func OS(signals <-chan os.Signal) Env {
	e := Env{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		LookupEnv: os.LookupEnv, Signals: signals, Hangups: hangups, Every: every,
	}
	_, e.StdinTerminal = columns(os.Stdin)
	_, e.StdoutTerminal = columns(os.Stdout)
	e.Width, e.StderrTerminal = columns(os.Stderr)
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
	signal.Notify(c, unix.SIGHUP)
	return c, func() { signal.Stop(c) }
}

func every(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTicker(d)
	return t.C, t.Stop
}

// columns returns the width of a terminal; ok is false for anything else.
func columns(f *os.File) (n int, ok bool) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, false
	}
	return int(size.Col), true
}

// get returns a variable, empty if it is not set.
func (e Env) get(name string) string {
	if e.LookupEnv == nil {
		return ""
	}
	value, _ := e.LookupEnv(name)
	return value
}
