// Package peers owns a program in Node that speaks ACP, and starts it for tests: it was
// written from the protocol's document alone, on a library of others. README.md has how it
// is called. It must not know anything of skep.
package peers

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/guests"
)

// patience ends a program that no longer answers; nothing is measured by it.
const patience = 5 * time.Minute

// Line is a line that the program prints: one of its members is set.
type Line struct {
	Listening string           `json:"listening"`
	Ready     bool             `json:"ready"`
	Sent      *acptest.Message `json:"sent"`
	Received  *acptest.Message `json:"received"`
}

// Agent is a running program. Its methods are for one goroutine.
type Agent struct {
	// URL is where an agent over HTTP takes messages.
	URL string

	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr bytes.Buffer // to be read when the program has ended
	ended  bool
}

// Options are how an agent starts.
type Options struct {
	// Name is its id, URL the host's address for messages: ws:// or http://.
	Name, URL, Token string
	// Later answers questions that come over HTTP by messages of their own.
	Later bool
	// AnswerBytes is the size of the body of its answers, in which the question's is
	// repeated; 0 for the question's body.
	AnswerBytes int
}

// Start starts an agent, which ends with the test. Where the library of the program is not
// installed the test is skipped, unless every program must be there.
func Start(t *testing.T, o Options) *Agent {
	t.Helper()
	installed := filepath.Join(guests.Root(), "bin/acpclients")
	if _, err := os.Stat(filepath.Join(installed, ".made")); err != nil && guests.ToolchainsRequired() {
		t.Fatalf("%v: make acp-clients", err)
	} else if err != nil {
		t.Skipf("needs the library in %s: make acp-clients", installed)
	}
	program := filepath.Join(guests.Root(), "host/internal/gateway/acp/acptest/peers/node/agent.mjs")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	a := &Agent{cmd: exec.CommandContext(ctx, "node", program, o.Name, o.URL)}
	a.cmd.Env = append(os.Environ(), "ACP_CLIENTS="+installed, "ACP_TOKEN="+o.Token, fmt.Sprint("ACP_ANSWER_BYTES=", o.AnswerBytes))
	if o.Later {
		a.cmd.Env = append(a.cmd.Env, "ACP_ANSWER=later")
	}
	a.cmd.Stderr = &a.stderr
	a.start(t)
	for line := a.next(t); !line.Ready; line = a.next(t) {
		a.URL = line.Listening
	}
	return a
}

func (a *Agent) start(t *testing.T) {
	t.Helper()
	var err error
	if a.stdin, err = a.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := a.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !a.ended {
			_ = a.cmd.Process.Kill()
			_ = a.cmd.Wait()
		}
	})
	a.stdout = bufio.NewReader(stdout)
}

// next reads the next line.
func (a *Agent) next(t *testing.T) (line Line) {
	t.Helper()
	text, err := a.stdout.ReadBytes('\n')
	if err != nil {
		t.Fatalf("the agent ends: %v, %v", err, a.wait())
	}
	if err := json.Unmarshal(text, &line); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return line
}

// Send lets the agent send a message: receiver, type, body and more header fields.
func (a *Agent) Send(t *testing.T, message map[string]any) acptest.Message {
	t.Helper()
	text, err := json.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.stdin.Write(append(text, '\n')); err != nil {
		t.Fatal(err)
	}
	for line := a.next(t); ; line = a.next(t) {
		if line.Sent != nil && line.Sent.Header.Type == message["type"] && line.Sent.Header.Receiver == message["receiver"] {
			return *line.Sent
		}
	}
}

// Receive returns the next message that the agent gets.
func (a *Agent) Receive(t *testing.T) acptest.Message {
	t.Helper()
	for line := a.next(t); ; line = a.next(t) {
		if line.Received != nil {
			return *line.Received
		}
	}
}

// End ends the agent's input. The test fails unless it has its answers and ends well.
func (a *Agent) End(t *testing.T) {
	t.Helper()
	if err := a.stdin.Close(); err != nil {
		t.Error(err)
	}
	_, _ = io.Copy(io.Discard, a.stdout)
	if err := a.wait(); err != nil {
		t.Error(err)
	}
}

// wait waits for the end of the program; the error has the program's reason.
func (a *Agent) wait() error {
	a.ended = true
	if err := a.cmd.Wait(); err != nil {
		return fmt.Errorf("the agent ends: %w: %s", err, a.stderr.Bytes())
	}
	return nil
}
