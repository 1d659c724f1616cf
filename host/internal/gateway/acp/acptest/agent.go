package acptest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Agent is another party's program that takes messages over HTTP.
type Agent struct {
	*httptest.Server
	// Answer returns the answer to a message, which goes into the HTTP reply; nil replies
	// with a status alone, 202 for 0.
	answer func(Message) (*Message, int)

	mu  sync.Mutex
	got []Message
	bad []error
}

// NewAgent starts an agent. It ends with the test, which fails if a message was no
// message of the document.
func NewAgent(t *testing.T, answer func(Message) (reply *Message, status int)) *Agent {
	t.Helper()
	a := &Agent{answer: answer}
	a.Server = httptest.NewServer(http.HandlerFunc(a.serve))
	t.Cleanup(func() {
		a.Close()
		for _, err := range a.bad {
			t.Error(err)
		}
	})
	return a
}

func (a *Agent) serve(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	m, err := Parse(text)
	a.mu.Lock()
	if err != nil {
		a.bad = append(a.bad, err)
	}
	a.got = append(a.got, m)
	a.mu.Unlock()
	reply, status := a.answer(m)
	if status == 0 {
		status = http.StatusOK
		if reply == nil {
			status = http.StatusAccepted
		}
	}
	if reply == nil {
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, reply.Text())
}

// Got are the messages that came, oldest first.
func (a *Agent) Got() []Message {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]Message(nil), a.got...)
}
