package process_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"skep/host/internal/turn"
	"skep/host/internal/turn/process"
)

// openWith opens an actor with options of its own.
func openWith(t *testing.T, o process.Options) *process.Program {
	t.Helper()
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	o.Command = []string{"/proc/self/exe", process.Command}
	p, err := process.Open(t.Context(), o, process.Source{Name: "actor", Program: program, Memory: 256 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// works wants a program to run turns.
func works(t *testing.T, p *process.Program) {
	t.Helper()
	if note, exit := ask(t, t.Context(), p, "echo", "well"); note != "well" || exit != nil {
		t.Errorf("afterwards: %q %v", note, exit)
	}
}

func pidOf(t *testing.T, p *process.Program) int {
	t.Helper()
	note, exit := ask(t, t.Context(), p, "pid", "")
	if exit != nil {
		t.Fatal(exit)
	}
	return number(t, note)
}

// noneCalled waits until no process is called by a name, which is its first
// argument.
func noneCalled(t *testing.T, name string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		files, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		left := 0
		for _, f := range files {
			if raw, err := os.ReadFile(f); err == nil && strings.HasPrefix(string(raw), name+"\x00") {
				left++
			}
		}
		if left == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d processes %s are left", left, name)
		}
	}
}

// The output of a program before it serves is bounded, and the host dials only an address
// in the program's own directory with the matching certificate.
func TestHandshakesThatAreRefused(t *testing.T) {
	for name, want := range map[string]string{
		"endless":   "it did not say that it serves",
		"elsewhere": `it says that it listens at "tcp:127.0.0.1:1"`,
		"barefaced": "authentication handshake failed",
		"imposter":  "certificate signed by unknown authority",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := open(t, process.Source{Name: name})
			var refused *turn.LoadError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), want) || len(err.Error()) > 4<<10 {
				t.Errorf("%.5000v, want %q", err, want)
			}
			noneCalled(t, name)
		})
	}
}

// TestTooLongForSockets: the longest temporary directory that sockets fit in serves, the
// next one is refused by its name.
func TestTooLongForSockets(t *testing.T) {
	name := filepath.Join("/tmp", strings.Repeat("d", 37))
	for _, dir := range []string{name[:len(name)-1], name} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
	}
	t.Setenv("TMPDIR", name[:len(name)-1])
	if _, err := open(t, process.Source{Name: "actor", Memory: 256 << 20}); err != nil {
		t.Error(err)
	}
	t.Setenv("TMPDIR", name)
	_, err := open(t, process.Source{Name: "actor", Memory: 256 << 20})
	if err == nil || !strings.Contains(err.Error(), name+" has 42 bytes, at most 41 fit") || !strings.Contains(err.Error(), "set TMPDIR") {
		t.Errorf("%v", err)
	}
}

// A process that does not answer is killed, and the next turn has a new one; a turn
// that was in it learns why.
func TestStoppedProcessIsKilled(t *testing.T) {
	p := openWith(t, process.Options{}.WithHealth(20*time.Millisecond, 200*time.Millisecond))
	pid := pidOf(t, p)
	var hung sync.WaitGroup
	hung.Go(func() {
		if _, exit := ask(t, t.Context(), p, "hang", ""); exit == nil || exit.Kind != turn.ExitProcess || !strings.Contains(exit.Message, "it did not answer the health check") {
			t.Errorf("the turn in it ended as %v", exit)
		}
	})
	for !p.Busy() {
		time.Sleep(time.Millisecond)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	gone(t, pid)
	hung.Wait()
	works(t, p)
}

// A process without a turn is ended, with all that it has started, and started
// again for the next turn.
func TestIdleProcessIsEnded(t *testing.T) {
	p := openWith(t, process.Options{IdleTimeout: 300 * time.Millisecond})
	note, exit := ask(t, t.Context(), p, "fork", "")
	if exit != nil {
		t.Fatal(exit)
	}
	gone(t, number(t, note))
	works(t, p)
}

// counted is a log that counts its lines.
type counted struct {
	mu    sync.Mutex
	lines int
	text  strings.Builder
}

func (c *counted) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines++
	return c.text.Write(b)
}

// heldOutput writes "held" before what a collector does not get.
var heldOutput = &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
	if text, is := a.Value.Any().(turn.Output); is {
		a.Value = slog.StringValue("held: " + string(text))
	}
	return a
}}

// What a process writes reaches the log only so far, and as text, and does not leave the host.
func TestFloodIsBounded(t *testing.T) {
	log := &counted{}
	p := openWith(t, process.Options{Logger: slog.New(slog.NewTextHandler(log, heldOutput))})
	if note, exit := ask(t, t.Context(), p, "flood", ""); note != "written" || exit != nil {
		t.Fatalf("%q %v", note, exit)
	}
	works(t, p)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	if log.lines < 1000 || log.lines > 1010 || log.text.Len() > 1<<20 || !strings.Contains(log.text.String(), "has written its most lines") {
		t.Errorf("%d lines of %d bytes", log.lines, log.text.Len())
	}
	if n := strings.Count(log.text.String(), `line="held: `); n != 1000 {
		t.Errorf("%d lines are kept in the host", n)
	}
	if strings.Contains(log.text.String(), "\x1b") {
		t.Error("an escape sequence is in the log")
	}
}

// Messages that are too large fail a call or a turn, and nothing else.
func TestLargeMessages(t *testing.T) {
	p := newActor(t)
	for megabytes, want := range map[int]string{
		4: "0 4194314", 5: "error: rpc error: code = ResourceExhausted",
	} {
		if note, exit := ask(t, t.Context(), p, "large", strings.Repeat("M", megabytes)); !strings.HasPrefix(note, want) || exit != nil {
			t.Errorf("a request of %d MiB: %.100q %v", megabytes, note, exit)
		}
	}
	if _, exit := ask(t, t.Context(), p, "huge", ""); exit == nil || exit.Kind != turn.ExitOutput || exit.Limit != "limits.output" {
		t.Errorf("a huge answer: %v", exit)
	}
	if note, exit := ask(t, t.Context(), p, "echo", strings.Repeat("x", 900<<10)); len(note) != 900<<10 || exit != nil {
		t.Errorf("a large input: %d bytes, %v", len(note), exit)
	}
	works(t, p)
}

// A process that starts others without end is killed with all of them.
func TestForkBomb(t *testing.T) {
	p, err := open(t, process.Source{Name: "actor", Memory: 2 << 30})
	if err != nil {
		t.Fatal(err)
	}
	pid := pidOf(t, p)
	note, exit := ask(t, t.Context(), p, "bomb", "")
	switch {
	case exit == nil && strings.Contains(note, "error: "): // the kernel has refused
	case exit == nil || exit.Kind != turn.ExitProcess || !strings.Contains(exit.Message, "more than 512 processes and threads"):
		t.Errorf("%q %v", note, exit)
	default:
		gone(t, pid)
	}
	works(t, p)
}

// A process that starts another and ends, again and again, is never there when it is
// looked for, and is killed all the same.
func TestRunawayIsKilled(t *testing.T) {
	p := newActor(t)
	group := pidOf(t, p)
	if note, exit := ask(t, t.Context(), p, "runaway", ""); note != "ran" || exit != nil {
		t.Fatalf("%q %v", note, exit)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); syscall.Kill(-group, 0) == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("something of the process is left")
		}
	}
}

// A turn that goes on after it was called off is ended, and its process with it.
func TestTurnThatIgnoresBeingCalledOff(t *testing.T) {
	p := newActor(t)
	pid := pidOf(t, p)
	off := make(chan struct{})
	close(off)
	res := p.Turn(t.Context(), turn.Turn{
		Tenant: "default", Input: []byte(`{"do":"hang"}`), Cancelled: off, Clock: &clock{},
		Limits: turn.Limits{Memory: 256 << 20, Grace: 10 * time.Millisecond},
	})
	if res.Exit == nil || res.Exit.Kind != turn.ExitCancelled || res.Exit.Limit != "limits.grace" {
		t.Errorf("ended as %v", res.Exit)
	}
	gone(t, pid)
	works(t, p)
}

// Only the host can call a process, even with another valid certificate.
func TestOnlyTheHostIsLetIn(t *testing.T) {
	p := newActor(t)
	stranger, err := certificate()
	if err != nil {
		t.Fatal(err)
	}
	var refusals []string
	for _, socket := range socketsOf(t, p, "default") {
		conn, err := tls.Dial("unix", socket, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{stranger}})
		if err == nil {
			_, err = conn.Read(make([]byte, 1)) // with TLS 1.3 the refusal comes behind the handshake
		}
		if err == nil {
			t.Fatal("a stranger is let in at " + socket)
		}
		refusals = append(refusals, err.Error())
	}
	// The process refuses the certificate, and the host every other process.
	if !strings.Contains(strings.Join(refusals, "\n"), "tls: ") {
		t.Error(refusals)
	}
	works(t, p)
}

// certificate creates a certificate that neither side has announced.
func certificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(int64(os.Getpid())), DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
