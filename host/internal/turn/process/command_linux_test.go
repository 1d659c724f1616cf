package process_test

import (
	"bufio"
	"bytes"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/host/internal/turn/process"
)

// guards is the command line that a guard begins with.
var guards = []string{"/proc/self/exe", process.Command}

// logged is a log that can be read while it is written.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// sh starts a line of shell.
func sh(t *testing.T, line string, set ...func(*process.CommandLine)) *process.Running {
	t.Helper()
	l := process.CommandLine{Name: "test", Argv: []string{"/bin/sh", "-c", line}, Dir: t.TempDir(), Env: []string{"PATH=" + os.Getenv("PATH"), "A=b"}}
	for _, f := range set {
		f(&l)
	}
	r, err := process.Start(guards, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(0) })
	return r
}

func TestCommandTalks(t *testing.T) {
	t.Parallel()
	r := sh(t, `read x; echo "$x $A $(env | wc -l) $(ls | wc -l) $(ulimit -n) $(ulimit -c)"; grep NoNewPrivs /proc/self/status`)
	if _, err := r.Input.WriteString("hello\n"); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewScanner(r.Output)
	for _, want := range []string{"hello b", "NoNewPrivs:\t1"} {
		if !out.Scan() || !strings.HasPrefix(out.Text(), want) {
			t.Errorf("it says %q, want %q", out.Text(), want)
		}
		if want == "hello b" && !strings.HasSuffix(out.Text(), " 0 1024 0") {
			t.Errorf("it runs with other limits: %q", out.Text())
		}
	}
	<-r.Done()
	if got := r.Ended(); got != "it ended by itself" {
		t.Error(got)
	}
}

func TestCommandEnds(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"echo bad luck >&2; exit 5":     "it ended with exit code 5; its last words: bad luck",
		"kill -SEGV $$":                 "it was killed by signal segmentation fault",
		"printf 'no newline' >&2":       "it ended by itself; its last words: no newline",
		"(sleep 1000; echo x) & exit 3": "it ended with exit code 3",
	} {
		r := sh(t, line)
		select {
		case <-r.Done():
		case <-time.After(patience):
			t.Fatalf("%s: it runs on", line)
		}
		if got := r.Ended(); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

// A command that does not care that its input is closed is killed, with what it has
// started.
func TestCommandIsClosed(t *testing.T) {
	t.Parallel()
	r := sh(t, `trap "" TERM; setsid sleep 1000 >/dev/null & echo $!; while :; do sleep 1000; done`)
	out := bufio.NewScanner(r.Output)
	if !out.Scan() {
		t.Fatal("it does not start")
	}
	if r.Ended() != "" {
		t.Error("it has ended")
	}
	if err := r.Close(10 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	gone(t, number(t, out.Text()))
	if err := r.Close(time.Hour); err != nil {
		t.Error("again:", err)
	}
}

func TestCommandDoesNotStart(t *testing.T) {
	t.Parallel()
	if _, err := process.Start(nil, process.CommandLine{Name: "test", Argv: []string{"/bin/true"}}); err == nil {
		t.Error("without a guard")
	}
	if _, err := process.Start([]string{"/nonexistent"}, process.CommandLine{Name: "test", Argv: []string{"/bin/true"}, Dir: "/"}); err == nil || !strings.Contains(err.Error(), "start the guard of test") {
		t.Error(err)
	}
	for want, set := range map[string]func(*process.CommandLine){
		"no such file or directory": func(l *process.CommandLine) { l.Argv = []string{"/nonexistent/x"} },
		"exit code 126":             func(l *process.CommandLine) { l.Dir = "/nonexistent" },
		"no command to start":       func(l *process.CommandLine) { l.Argv = nil },
	} {
		r := sh(t, "", set)
		<-r.Done()
		if got := r.Ended(); !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// What a command says is bounded, and holds no secret, also where the bound would
// cut one.
func TestCommandWords(t *testing.T) {
	t.Parallel()
	log := &logged{}
	secret := "hunter2-" + strings.Repeat("s", 40)
	r := sh(t, `i=0; while [ $i -lt 1200 ]; do echo "line $i" >&2; i=$((i+1)); done`, func(l *process.CommandLine) {
		l.Logger = slog.New(slog.NewTextHandler(log, heldOutput))
	})
	<-r.Done()
	if n := strings.Count(log.String(), `line="held: line `); n != 1000 {
		t.Errorf("%d lines stay in the host", n)
	}
	if n := strings.Count(log.String(), "the command says"); n != 1000 || !strings.Contains(log.String(), "the others are lost") {
		t.Errorf("%d lines", n)
	}
	cut := sh(t, `printf '%01000d%s%0500d\n' 0 `+secret+` 0 >&2`, func(l *process.CommandLine) {
		l.Scrub = func(text string) string { return strings.ReplaceAll(text, secret, "[secret]") }
	})
	<-cut.Done()
	if got := cut.LastOutput(); strings.Contains(got, "hunter2") || !strings.Contains(got, "[secret]") || len(got) > 1100 {
		t.Error(got)
	}
}
