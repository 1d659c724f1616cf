package mcpclient

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"skep/abi"
	"skep/host/internal/egress"
	"skep/host/internal/toolpin"
)

// Spec says what a server is. Command or URL is set.
type Spec struct {
	Name string
	// Command is a program's path and its arguments; Dir is where it runs, Env its
	// whole environment.
	Command []string
	Dir     string
	Env     []string
	// URL is where a server of streamable HTTP is. Token goes with each request as
	// a bearer's, empty for none. Private lets URL lead to private addresses.
	URL     string
	Token   string
	Private bool
	// Hidden are values that are replaced wherever the server repeats them, by
	// their names; Token is among them anyway.
	Hidden map[string]string
	// Timeout bounds the opening of a session with its list of tools, Idle how
	// long one is kept that nobody uses.
	Timeout, Idle time.Duration
	// MaxResult bounds an answer, in bytes of JSON.
	MaxResult int64
}

// minHidden is the length from which a value is looked for: shorter ones are words
// that stand in any answer.
const minHidden = 8

// Options are what all servers of a host have in common.
type Options struct {
	// Guard begins the command line of what stands between host and program, see
	// [subprocess.Start].
	Guard  []string
	Logger *slog.Logger
	// Version is what servers are told of the host.
	Version string
	// Changed is told of a tool whose definition is another one than was pinned,
	// once in a session. It may be nil.
	Changed func(tenant, server, tool string)
	// Network changes how servers are reached; it may be nil.
	Network func(*egress.Options)
}

// Call is one call of a tool.
type Call struct {
	Tenant string
	// Tool and Pin are the tool's name and the digest of its definition as it was
	// pinned.
	Tool, Pin string
	// Args is a JSON object.
	Args json.RawMessage
	// Repeat lets a call be sent again whose answer was lost.
	Repeat bool
}

// Stats are what a server has been used for.
type Stats struct{ Sessions, Calls, Failures int64 }

// Server is one MCP server and the sessions with it. It is safe for concurrent
// use.
type Server struct {
	spec  Spec
	opt   Options
	scrub egress.Scrubber
	log   *slog.Logger

	sessions, calls, failures atomic.Int64

	mu      sync.Mutex
	closed  bool
	seats   map[string]*seat // by tenant
	closing sync.WaitGroup
}

// New returns a server without any session.
func New(spec Spec, opt Options) *Server {
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	var hidden []egress.Secret
	for name, value := range spec.Hidden {
		if len(value) >= minHidden {
			hidden = append(hidden, egress.Word(name, value))
		}
	}
	if spec.Token != "" {
		hidden = append(hidden, egress.Word("mcp."+spec.Name+".auth_token", spec.Token))
	}
	return &Server{
		spec: spec, opt: opt, scrub: egress.NewScrubber(hidden...), seats: map[string]*seat{},
		log: opt.Logger.With("mcp", spec.Name),
	}
}

// Stats returns what the server has been used for until now.
func (s *Server) Stats() Stats {
	return Stats{s.sessions.Load(), s.calls.Load(), s.failures.Load()}
}

// Tools lists the tools that the server has now, those that cannot be pinned left
// out: they are in the log.
func (s *Server) Tools(ctx context.Context, tenant string) ([]toolpin.Tool, *abi.Error) {
	st, fault := s.seat(tenant)
	if fault != nil {
		return nil, fault
	}
	st.begin()
	defer st.end()
	ses, fault := st.ready(ctx)
	if fault != nil {
		return nil, fault
	}
	return ses.list(), nil
}

// Call calls a tool and returns what it answers, a JSON value: what it gives as
// structured content, or its text, or both text and a list of its other parts.
// Errors have a code:
//
//   - DENIED: the definition is not the one that was pinned.
//   - UPSTREAM: the tool or the server says that the call failed.
//   - LIMIT: the answer is too large.
//   - UNAVAILABLE: the server cannot be started or reached, or broke off. The call
//     may have been carried out.
//   - DEADLINE, CANCELLED: ctx ended.
//
// Neither answer nor error holds a value that is hidden.
func (s *Server) Call(ctx context.Context, c Call) (json.RawMessage, *abi.Error) {
	s.calls.Add(1)
	answer, fault := s.call(ctx, c)
	if fault != nil {
		s.failures.Add(1)
	}
	return answer, fault
}

func (s *Server) call(ctx context.Context, c Call) (json.RawMessage, *abi.Error) {
	st, fault := s.seat(c.Tenant)
	if fault != nil {
		return nil, fault
	}
	st.begin()
	defer st.end()
	if fault := st.slot(ctx, c.Tool); fault != nil {
		return nil, fault
	}
	defer func() { <-st.slots }()
	for again := false; ; again = true {
		ses, fault := st.ready(ctx)
		if fault == nil {
			fault = ses.pinned(c)
		}
		if fault != nil {
			return nil, fault
		}
		answer, end := ses.call(ctx, c)
		if end == nil {
			st.well()
			return answer, nil
		}
		if end.broken {
			st.drop(ses)
		}
		if end.fault.Code != abi.CodeUnavailable {
			st.well()
		}
		if again || !end.lost || !c.Repeat && !end.unsent {
			return nil, end.fault
		}
	}
}

func (s *Server) seat(tenant string) (*seat, *abi.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, s.fault(abi.CodeUnavailable, "closed", "it was taken out of the file, or its table was changed")
	}
	st := s.seats[tenant]
	if st == nil {
		st = &seat{s: s, tenant: tenant, turnstile: make(chan struct{}, 1), slots: make(chan struct{}, maxCalls)}
		s.seats[tenant] = st
	}
	return st, nil
}

// Close ends all sessions and waits for that. Calls under way fail.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	seats := s.seats
	s.seats = map[string]*seat{}
	s.mu.Unlock()
	for _, st := range seats {
		s.closing.Go(st.close)
	}
	s.closing.Wait()
	return nil
}

// Forget ends a tenant's session, where it has one. It does not wait.
func (s *Server) Forget(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.seats[tenant]
	if delete(s.seats, tenant); st != nil && !s.closed {
		s.closing.Go(st.close)
	}
}

// later runs f, and Close waits for it; it does not once the server is closed.
func (s *Server) later(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closing.Go(f)
	}
}

// fault is an error that names the server.
func (s *Server) fault(code abi.Code, reason, format string, args ...any) *abi.Error {
	return abi.Errorf(code, abi.OpAction, reason, "MCP server %q: %s", s.spec.Name, s.scrub.Text(fmt.Sprintf(format, args...)))
}

// toolFault is an error that names the server and a tool of it.
func (s *Server) toolFault(code abi.Code, reason, tool, format string, args ...any) *abi.Error {
	return abi.Errorf(code, abi.OpAction, reason, "tool %q of MCP server %q: %s", tool, s.spec.Name, s.scrub.Text(fmt.Sprintf(format, args...)))
}
