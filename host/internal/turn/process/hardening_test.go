package process_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"skep/host/internal/turn"
	"skep/host/internal/turn/process"
)

// patience is for what must come; nothing is measured.
const patience = 20 * time.Second

// gone waits until a process is no more.
func gone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(raw), ") Z ") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("process %d lives: %s", pid, raw)
		}
	}
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestDetachedChildrenAreKilled(t *testing.T) {
	for _, end := range []string{"die", "close", "hang"} {
		t.Run(end, func(t *testing.T) {
			p := newActor(t)
			note, exit := ask(t, t.Context(), p, "fork", "")
			if exit != nil {
				t.Fatal(exit)
			}
			child := number(t, note)
			if err := syscall.Kill(child, 0); err != nil {
				t.Fatalf("the child does not run: %v", err)
			}
			switch end {
			case "die":
				if _, exit := ask(t, t.Context(), p, "die", ""); exit == nil || exit.Kind != turn.ExitProcess || !strings.Contains(exit.Message, "exit code 7") {
					t.Errorf("ended as %v", exit)
				}
			case "hang":
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				if _, exit := ask(t, ctx, p, "hang", ""); exit == nil || exit.Kind != turn.ExitDeadline || exit.Limit != "limits.turn" {
					t.Errorf("ended as %v", exit)
				}
			case "close":
				if err := p.Close(); err != nil {
					t.Fatal(err)
				}
			}
			gone(t, child)
		})
	}
}

func TestProcessIsStartedAgain(t *testing.T) {
	p := newActor(t)
	for range 2 {
		if _, exit := ask(t, t.Context(), p, "die", ""); exit == nil || exit.Kind != turn.ExitProcess {
			t.Fatalf("ended as %v", exit)
		}
		if note, exit := ask(t, t.Context(), p, "echo", "again"); note != "again" || exit != nil {
			t.Fatalf("after a death: %q %v", note, exit)
		}
	}
}

func TestDeathsStopAtTheMost(t *testing.T) {
	p := newActor(t)
	for range 5 {
		if _, exit := ask(t, t.Context(), p, "die", ""); exit == nil || exit.Kind != turn.ExitProcess {
			t.Fatalf("ended as %v", exit)
		}
	}
	_, exit := ask(t, t.Context(), p, "echo", "x")
	if exit == nil || !strings.Contains(exit.Message, "died 5 times in a row") {
		t.Errorf("ended as %v", exit)
	}
	if note, exit := askOf(t, t.Context(), p, "another", "echo", "x"); note != "x" || exit != nil {
		t.Errorf("another tenant: %q %v", note, exit)
	}
}

// TestHungTurnLeavesOthersAlone: a process that does not end one turn goes once the
// others have ended, and new turns go elsewhere.
func TestHungTurnLeavesOthersAlone(t *testing.T) {
	p := newActor(t)
	ctx, cancel := context.WithCancel(t.Context())
	var hung sync.WaitGroup
	hung.Go(func() {
		if _, exit := ask(t, ctx, p, "hang", ""); exit == nil || exit.Kind != turn.ExitCancelled {
			t.Errorf("ended as %v", exit)
		}
	})
	if note, exit := ask(t, t.Context(), p, "echo", "beside"); note != "beside" || exit != nil {
		t.Errorf("beside it: %q %v", note, exit)
	}
	cancel()
	hung.Wait()
	if note, exit := ask(t, t.Context(), p, "echo", "behind"); note != "behind" || exit != nil {
		t.Errorf("behind it: %q %v", note, exit)
	}
}

func TestSessionsAreTheTurns(t *testing.T) {
	p := newActor(t)
	if _, exit := ask(t, t.Context(), p, "keep", ""); exit != nil {
		t.Fatal(exit)
	}
	for _, do := range []string{"reuse", "forge"} {
		if note, exit := ask(t, t.Context(), p, do, "guess"); !strings.Contains(note, "no turn runs under this session") || exit != nil {
			t.Errorf("%s: %q %v", do, note, exit)
		}
	}
}

func TestTenantsHaveProcessesOfTheirOwn(t *testing.T) {
	p := newActor(t)
	if _, exit := askOf(t, t.Context(), p, "one", "keep", ""); exit != nil {
		t.Fatal(exit)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	// What the first tenant has left behind is not there: the turn waits for it.
	if note, exit := askOf(t, ctx, p, "two", "reuse", ""); exit == nil || exit.Kind != turn.ExitDeadline {
		t.Errorf("the other tenant: %q %v", note, exit)
	}
}

func TestConfinement(t *testing.T) {
	t.Setenv("SKEP_PLANTED", "planted-secret")
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("planted-secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	p := newActor(t)
	for _, c := range []struct{ do, with, want string }{
		{"read", secret, hiddenFile()},
		{"read", "/etc/shadow", hiddenFile()},
		{"read", "/proc/1/environ", "permission denied"},
		{"read", "/proc/self/environ", "permission denied"},
		{"write", filepath.Join(dir, "new"), hiddenFile()},
		{"write", "/usr/skep-test-new", "permission denied"},
		{"write", "own", "written"},
		{"dial", listener.Addr().String(), "permission denied"},
		{"ptrace", "", "operation not permitted"},
		{"namespace", "", "exit status"},
	} {
		if note, exit := ask(t, t.Context(), p, c.do, c.with); !strings.Contains(note, c.want) || exit != nil {
			t.Errorf("%s %s: %q %v, want %q", c.do, c.with, note, exit, c.want)
		}
	}
	env, _ := ask(t, t.Context(), p, "env", "")
	for _, line := range strings.Split(env, "\n") {
		name, _, is := strings.Cut(line, "=")
		if is && strings.Contains(name, "_") && name != "SKEP_PLUGIN" && !strings.HasPrefix(name, "PLUGIN_") {
			t.Errorf("the environment has %q", line)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestKernelHoldsIt looks from outside at what the kernel says of a process.
func TestKernelHoldsIt(t *testing.T) {
	p := newActor(t)
	note, exit := ask(t, t.Context(), p, "fork", "")
	if exit != nil {
		t.Fatal(exit)
	}
	pid := number(t, note)
	status := procFile(t, pid, "status")
	for name, want := range map[string]string{
		"NoNewPrivs": "1", "Seccomp": "2", "CapEff": "0000000000000000", "CapPrm": "0000000000000000",
	} {
		if !strings.Contains(status, name+":\t"+want+"\n") {
			t.Errorf("%s is not %s in\n%s", name, want, status)
		}
	}
	limits := procFile(t, pid, "limits")
	for _, want := range []string{"Max core file size 0 0", "Max open files 256 256"} {
		if !strings.Contains(strings.Join(strings.Fields(limits), " "), want) {
			t.Errorf("no %q in\n%s", want, limits)
		}
	}
}

func procFile(t *testing.T, pid int, name string) string {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestReadablePathsAreReadable(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "prices")
	if err := os.WriteFile(file, []byte("tea 250"), 0o644); err != nil {
		t.Fatal(err)
	}
	p, err := open(t, process.Source{Name: "actor", Memory: 256 << 20, Read: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	if note, exit := ask(t, t.Context(), p, "read", file); note != "tea 250" || exit != nil {
		t.Errorf("read: %q %v", note, exit)
	}
	if note, exit := ask(t, t.Context(), p, "write", file); !strings.Contains(note, "permission denied") || exit != nil {
		t.Errorf("write: %q %v", note, exit)
	}
}

func TestMemoryLimit(t *testing.T) {
	p, err := open(t, process.Source{Name: "actor", Memory: 256 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if note, exit := ask(t, t.Context(), p, "alloc", ""); exit == nil || exit.Kind != turn.ExitMemory || exit.Limit != "limits.memory" {
		t.Errorf("%q %v", note, exit)
	}
}

func TestProgramsThatDoNotStart(t *testing.T) {
	for name, want := range map[string]string{
		"garbage":   `its first line is no handshake: "no handshake`,
		"stillborn": "nothing works here",
		"stranger":  "incompatible API version",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := open(t, process.Source{Name: name})
			var refused *turn.LoadError
			if !errors.As(err, &refused) || refused.Step != turn.StepStart || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(want)) {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
	t.Run("no program", func(t *testing.T) {
		_, err := open(t, process.Source{Name: "text", Program: []byte("not a program")})
		var refused *turn.LoadError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), "neither a program for Linux nor a script") {
			t.Errorf("%v", err)
		}
	})
	t.Run("silent", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		program, err := os.ReadFile("/proc/self/exe")
		if err != nil {
			t.Fatal(err)
		}
		_, err = process.Open(ctx, process.Options{Command: []string{"/proc/self/exe", process.Command}}, process.Source{Name: "silent", Program: program})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}

func TestWrongDigest(t *testing.T) {
	_, err := open(t, process.Source{Name: "actor", SHA256: strings.Repeat("0", 64)})
	var refused *turn.LoadError
	if !errors.As(err, &refused) || refused.Step != turn.StepDigest || refused.Key != "sha256" {
		t.Errorf("%v", err)
	}
}

// TestHostKilled kills a host in the middle of a turn.
func TestHostKilled(t *testing.T) {
	if os.Getenv("SKEP_TEST_HOST") != "" {
		p := newActor(t)
		note, exit := ask(t, t.Context(), p, "fork", "")
		fmt.Println("child", note, exit)
		ask(t, t.Context(), p, "hang", "")
		return
	}
	host := exec.Command(os.Args[0], "-test.run=TestHostKilled")
	host.Env = append(os.Environ(), "SKEP_TEST_HOST=1")
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	var word string
	var child int
	if _, err := fmt.Fscan(out, &word, &child); err != nil || child == 0 {
		t.Fatalf("%q %d %v", word, child, err)
	}
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait() // it was killed
	gone(t, child)
}

// A program that does not start is refused in words that name what to change.
func TestRefusalNamesTheKey(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "interpreter")
	other, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(outside, other, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		src  process.Source
		want string
	}{
		"unreadable":       {process.Source{Program: []byte("#!" + outside + " -I\nx")}, "it may not run its interpreter " + outside + "; the key to change is [agents.greeter] readable"},
		"no interpreter":   {process.Source{Program: []byte("#!/nowhere/python3\n")}, "its interpreter /nowhere/python3 is not there; its first line names it"},
		"a script dies":    {process.Source{Program: []byte("#!/bin/sh\necho no skep >&2; exit 4\n")}, "it ended with exit code 4 before it served; what it reads, unless it is below /usr, must be in readable; its last words: no skep; the key to change is [agents.greeter] readable"},
		"too small":        {process.Source{Name: "actor", Memory: 1 << 20}, "it took more memory than the 1024 KiB that it may, and was killed; the key to change is [agents.greeter] limits.memory"},
		"a module":         {process.Source{Program: []byte("\x00asm\x01\x00\x00\x00")}, "(admit): it is a WebAssembly module; its source begins with file:"},
		"another program":  {process.Source{Program: other}, "it did not say that it serves; is it an agent?"},
		"dies at start":    {process.Source{Name: "stillborn"}, "it ended with exit code 3 before it served; its last words: nothing works here"},
		"other first line": {process.Source{Program: []byte("#!/bin/sh\necho hello\nread x\n")}, `its first line is no handshake: "hello"; is it an agent?`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.src.Name == "" {
				c.src.Name = "exec:greeter"
			}
			c.src.Table = "agents.greeter"
			_, err := open(t, c.src)
			var refused *turn.LoadError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "program "+c.src.Name+" refused (") {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
