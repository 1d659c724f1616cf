package modeltest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"skep/abi"
)

// Reply is what a provider answers to one request.
type Reply struct {
	// Text and Reasoning come in these pieces; so do the calls' arguments.
	Text, Reasoning []string
	// Signature is that of Anthropic's reasoning, Redacted a block of it that
	// cannot be read.
	Signature, Redacted string
	Calls               []Call
	// Finish is one of package abi; empty is that of the content.
	Finish string
	// Refusal is OpenAI's text of a model that will not answer.
	Refusal string
	// Usage is left out when nil.
	Usage *abi.ChatUsage

	// Status other than 0 answers with a Failure and these headers.
	Status  int
	Header  map[string]string
	Failure Failure
	// Body other than "" is the answer as it stands, of this Type.
	Body, Type string
	// Events other than 0 breaks the stream off after so many.
	Events int
	// Fail ends a stream with an error event.
	Fail *Failure
	// Silent waits in the middle of a stream until the caller is gone.
	Silent bool
}

// Call is a tool call in pieces.
type Call struct {
	ID, Name  string
	Arguments []string
}

// Failure is what a provider says of a call that failed.
type Failure struct{ Type, Code, Message string }

// Request is what a provider was asked.
type Request struct {
	// N counts from 0.
	N      int
	Path   string
	Header http.Header
	Body   json.RawMessage
}

// Answer makes the reply to a request. It is called from many goroutines.
type Answer func(Request) Reply

// InOrder gives each reply once. Whoever asks for more is told so.
func InOrder(replies ...Reply) Answer {
	return func(r Request) Reply {
		if r.N >= len(replies) {
			return Reply{Status: http.StatusTeapot, Failure: Failure{Type: "invalid_request_error", Message: "the test has no more replies"}}
		}
		return replies[r.N]
	}
}

// Server is a provider. It is an http.Handler, and safe for concurrent use.
type Server struct {
	answer Answer
	// check finds what the real provider would refuse; write speaks its format.
	check func(Request) string
	write func(w http.ResponseWriter, r *http.Request, asked Request, reply Reply)
	fail  func(Failure) any

	mu    sync.Mutex
	asked []Request
}

// Requests are those so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.asked...)
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	asked := Request{N: len(s.asked), Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
	s.asked = append(s.asked, asked)
	s.mu.Unlock()
	reply := s.answer(asked)
	if wrong := s.check(asked); wrong != "" {
		reply = Reply{Status: http.StatusBadRequest, Failure: Failure{Type: "invalid_request_error", Message: wrong}}
	}
	for name, value := range reply.Header {
		w.Header().Set(name, value)
	}
	switch {
	case reply.Body != "":
		w.Header().Set("Content-Type", reply.Type)
		w.WriteHeader(max(reply.Status, http.StatusOK))
		_, _ = io.WriteString(w, reply.Body)
	case reply.Status != 0:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(reply.Status)
		_ = json.NewEncoder(w).Encode(s.fail(reply.Failure))
	default:
		s.write(w, r, asked, reply)
	}
}

// events writes a stream, and breaks it off where the reply says so.
type events struct {
	w     http.ResponseWriter
	r     *http.Request
	reply Reply
	n     int
}

// send writes one event, of a name where the format has names.
func (e *events) send(name string, data any) {
	if e.reply.Events > 0 && e.n >= e.reply.Events {
		panic(http.ErrAbortHandler)
	}
	e.n++
	text, ok := data.(string)
	if !ok {
		raw, err := json.Marshal(data)
		if err != nil {
			panic(err)
		}
		text = string(raw)
	}
	if name != "" {
		name = "event: " + name + "\n"
	}
	_, _ = fmt.Fprintf(e.w, "%sdata: %s\n\n", name, text)
	_ = http.NewResponseController(e.w).Flush()
}

// pause waits where the reply falls silent.
func (e *events) pause() {
	if e.reply.Silent {
		<-e.r.Context().Done()
		panic(http.ErrAbortHandler)
	}
}

func joined(pieces []string) string { return strings.Join(pieces, "") }

type object = map[string]any
