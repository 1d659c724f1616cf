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

// Reply is the response to one request.
type Reply struct {
	// Text and Reasoning are sent in these pieces.
	Text, Reasoning []string
	// Signature belongs to Anthropic's reasoning; Redacted is an encrypted block of it.
	Signature, Redacted string
	Calls               []Call
	// Finish is a finish reason of package abi; empty selects the usual one.
	Finish string
	// Refusal is OpenAI's text for a refused request.
	Refusal string
	// Usage is omitted if nil.
	Usage *abi.ChatUsage

	// A Status other than 0 answers with Failure and Header.
	Status  int
	Header  map[string]string
	Failure Failure
	// Body, if not empty, is sent as it is, with the media type Type.
	Body, Type string
	// Events, if not 0, breaks the stream off after so many events.
	Events int
	// Fail ends the stream with an error event.
	Fail *Failure
	// Stall waits in the middle of a stream until the caller is gone.
	Stall bool
}

// Call is a tool call in pieces.
type Call struct {
	ID, Name  string
	Arguments []string
}

// Failure is the error body of a provider.
type Failure struct{ Type, Code, Message string }

// Request is a received request.
type Request struct {
	// N counts from 0.
	N      int
	Path   string
	Header http.Header
	Body   json.RawMessage
}

// Answer returns the reply to a request. It must be safe for concurrent use.
type Answer func(Request) Reply

// InOrder sends each reply once; further requests fail.
func InOrder(replies ...Reply) Answer {
	return func(r Request) Reply {
		if r.N >= len(replies) {
			return Reply{Status: http.StatusTeapot, Failure: Failure{Type: "invalid_request_error", Message: "the test has no more replies"}}
		}
		return replies[r.N]
	}
}

// Server is a fake provider. It is an http.Handler, and safe for concurrent use.
type Server struct {
	answer Answer
	// check finds what the real provider would refuse; write sends a reply in the
	// provider's format.
	check func(Request) string
	write func(w http.ResponseWriter, r *http.Request, asked Request, reply Reply)
	fail  func(Failure) any

	mu    sync.Mutex
	asked []Request
}

// Requests returns the requests so far.
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

// events writes a stream, and breaks it off after Reply.Events events.
type events struct {
	w     http.ResponseWriter
	r     *http.Request
	reply Reply
	n     int
}

// send writes one event; name is empty in formats without event names.
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

// pause blocks if the reply stalls.
func (e *events) pause() {
	if e.reply.Stall {
		<-e.r.Context().Done()
		panic(http.ErrAbortHandler)
	}
}

func joined(pieces []string) string { return strings.Join(pieces, "") }

type object = map[string]any
