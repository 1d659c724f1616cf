// Package peers owns a program in Python that speaks IaCP, as hub and as spoke, and starts
// it for tests: it was written from the protocol's document, with the names of control
// messages of our page. README.md has its flags and how it reads the document. It must not
// know anything of skep.
package peers

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"skep/host/internal/guests"
)

// patience ends a program that no longer answers; nothing is measured by it.
const patience = 20 * time.Minute

// Event is a line that a program prints.
type Event map[string]any

// Peer is a running program.
type Peer struct {
	stdin   io.Writer
	lines   chan []byte
	waiting []Event
	end     func()
}

// Start starts the program. It ends with the test. Without Python the test is skipped,
// unless every program must be there.
func Start(t *testing.T, mode string, flags ...string) *Peer {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil && guests.ToolchainsRequired() {
		t.Fatal("python3 is missing")
	} else if err != nil {
		t.Skip("needs python3")
	}
	file := filepath.Join(guests.Root(), "host/internal/gateway/iacp/iacptest/peers/python/peer.py")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, python, append([]string{file, mode}, flags...)...)
	cmd.Env, cmd.Stderr = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1"), os.Stderr
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
	p := &Peer{stdin: stdin, lines: make(chan []byte, 1<<15)}
	p.end = sync.OnceFunc(func() {
		_ = stdin.Close()
		for range p.lines { // until the program has ended
		}
		_ = cmd.Wait()
	})
	t.Cleanup(p.Stop)
	go p.read(stdout)
	return p
}

// Stop ends the program.
func (p *Peer) Stop() { p.end() }

func (p *Peer) read(stdout io.Reader) {
	defer close(p.lines)
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		p.lines <- line
	}
}

// Next returns the next event of a kind; events of other kinds wait to be asked for.
func (p *Peer) Next(t *testing.T, kind string) Event {
	t.Helper()
	if i := slices.IndexFunc(p.waiting, func(e Event) bool { return e["event"] == kind }); i >= 0 {
		e := p.waiting[i]
		p.waiting = slices.Delete(p.waiting, i, i+1)
		return e
	}
	for line := range p.lines {
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if e["event"] == kind {
			return e
		}
		p.waiting = append(p.waiting, e)
	}
	t.Fatalf("the peer ended before %q: %v", kind, p.waiting)
	return nil
}

// Begin lets the peer begin a job. Its result is the event "did".
func (p *Peer) Begin(t *testing.T, job string) {
	t.Helper()
	if _, err := io.WriteString(p.stdin, job+"\n"); err != nil {
		t.Fatal(err)
	}
}

// Do lets the peer do a job and returns what came of it.
func (p *Peer) Do(t *testing.T, job string) Event {
	t.Helper()
	p.Begin(t, job)
	did := p.Next(t, "did")
	if did["fault"] != nil {
		t.Fatalf("%s: %v", job, did["fault"])
	}
	return did
}
