package golden_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skep/host/internal/cli"
	"skep/host/internal/guests"
)

var update = flag.Bool("update", false, "write the outputs in testdata anew")

// TestMain lets the test binary stand in for the program where a host starts it
// again: to compile a module and to confine a subprocess.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		os.Exit(cli.Main(context.Background(), cli.OS(nil)))
	}
	os.Exit(m.Run())
}

// golden compares an output with the committed one.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Error(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s differs (-committed +got); if that is meant, run this test with -update:\n%s", file, diff)
	}
}

// variables are the environment of all commands.
var variables = map[string]string{
	"OPS_KEY": "ops-key-0123456789", "ADA_KEY": "ada-key-0123456789", "ALICE_KEY": "alice-key-0123456789", "DEPOT_KEY": "depot-key-0123456789",
	"WEATHER_KEY": "weather-key", "DEPOT_TOKEN": "depot-token-0123456789", "MODEL_KEY": "model-key", "MODEL_TOKEN": "model-token-0123456789", "SHORT": "short",
}

// shell runs commands in a directory.
type shell struct {
	t   *testing.T
	dir string
}

// newShell copies files of testdata into a directory of their own.
func newShell(t *testing.T, from string) shell {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", from))); err != nil {
		t.Fatal(err)
	}
	s := shell{t, dir}
	s.copy(filepath.Join(guests.Root(), "spec", "conformance", "guests", "c.wasm"), "conform.wasm")
	return s
}

func (s shell) copy(from, to string) {
	s.t.Helper()
	raw, err := os.ReadFile(from)
	if err != nil {
		s.t.Fatal(err)
	}
	s.write(to, string(raw))
}

func (s shell) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// env is what a command of the shell sees.
func (s shell) env(stdout, stderr io.Writer, args ...string) cli.Env {
	return cli.Env{
		Args: args, Stdin: strings.NewReader(""), Stdout: stdout, Stderr: stderr,
		LookupEnv: func(name string) (string, bool) {
			v, ok := variables[name]
			return v, ok
		},
		Self: os.Args[0], Plugins: filepath.Join(guests.Root(), "bin", "plugins"), Cache: guests.CacheDir(s.t),
	}
}

// run runs a command and returns its exit code and its output. Paths below the
// shell's directory are shown as DIR.
func (s shell) run(args ...string) (code int, stdout, stderr string) {
	s.t.Helper()
	var out, notes bytes.Buffer
	code = cli.Main(s.t.Context(), s.env(&out, &notes, args...))
	return code, s.scrub(out.String()), s.scrub(notes.String())
}

// scrub takes out of an output what differs from machine to machine.
func (s shell) scrub(text string) string {
	if raw, err := os.ReadFile(s.file("native")); err == nil {
		text = strings.ReplaceAll(text, fmt.Sprintf("%x", sha256.Sum256(raw)), "NATIVE")
	}
	return strings.ReplaceAll(text, s.dir, "DIR")
}

// file is a path in the shell's directory.
func (s shell) file(name string) string { return filepath.Join(s.dir, name) }

// served is a host that runs in this process.
type served struct {
	url, admin string
	stop       func()
}

var serving = regexp.MustCompile(`address=(\S+) +admin=(\S+)`)

// serve runs skep serve until the test ends.
func (s shell) serve(args ...string) served {
	s.t.Helper()
	log, signals, done := &syncBuffer{}, make(chan os.Signal, 1), make(chan int, 1)
	env := s.env(io.Discard, log, append([]string{"serve"}, args...)...)
	env.Signals = signals
	go func() { done <- cli.Main(context.Background(), env) }()
	stop := sync.OnceFunc(func() {
		signals <- syscall.SIGTERM
		if code := <-done; code != 0 {
			s.t.Errorf("serve: exit code %d\n%s", code, log)
		}
	})
	s.t.Cleanup(stop)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if m := serving.FindStringSubmatch(log.String()); m != nil {
			return served{m[1], "http://" + m[2], stop}
		}
		select {
		case code := <-done:
			done <- code
			s.t.Fatalf("serve: exit code %d\n%s", code, log)
		default:
		}
	}
	s.t.Fatalf("the host does not serve:\n%s", log)
	return served{}
}

// syncBuffer can be read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
