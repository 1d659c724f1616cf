package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"skep/abi"
	"skep/host/internal/turn/egress"
	"skep/host/internal/turn/mcp/toolpin"
)

// Spec describes a server. Either Command or URL is set.
type Spec struct {
	Name string
	// Command is the path of a program and its arguments; Dir is its working directory,
	// Env its whole environment.
	Command []string
	Dir     string
	Env     []string
	// URL is the address of a server over streamable HTTP. Token is sent as bearer token
	// with each request, empty for none. Private lets URL lead to private addresses.
	URL     string
	Token   string
	Private bool
	// Hidden are values, by name, that are scrubbed from everything the server sends.
	// Token is always scrubbed.
	Hidden map[string]string
	// Timeout bounds the opening of a session with its list of tools. IdleTimeout is how
	// long an unused session is kept.
	Timeout, IdleTimeout time.Duration
	// MaxResult bounds an answer, in bytes of JSON.
	MaxResult int64
}

// minHidden is the length in bytes from which a value is scrubbed: shorter values occur as
// ordinary words.
const minHidden = 8

// Options are the settings that all servers of a host share.
type Options struct {
	// Guard begins the command line of the guard between host and program, see
	// [process.Start].
	Guard  []string
	Logger *slog.Logger
	// Version is the version of the host, sent to servers.
	Version string
	// OnToolChanged is called when the definition of a tool differs from its pin, once per
	// session and tool. It may be nil.
	OnToolChanged func(tenant, server, tool string)
	// Network changes how servers are reached; it may be nil.
	Network func(*egress.Options)
}

// Call is one call of a tool.
type Call struct {
	Tenant string
	// Tool and Pin are the tool's name and the digest of its pinned definition.
	Tool, Pin string
	// Args is a JSON object.
	Args json.RawMessage
	// Meta are members of the request's _meta.
	Meta map[string]any
	// Repeatable allows another attempt if the answer to one is lost. RepeatableByID allows it
	// where the server has declared that it finds a repeat by [IDMember], which Meta has.
	Repeatable, RepeatableByID bool
	// InDoubt is set if the server may have got the call before: it needs one of these.
	InDoubt bool
	// Wait makes a call over HTTP wait for a server that cannot be reached, and makes it again
	// more than once, for as long as ctx allows.
	Wait bool
}

// IDMember is the member of _meta that names a call, the same for each attempt, and the
// experimental capability of a server that carries out what has one name once.
const IDMember = "skep/id"

// Stats counts the use of a server.
type Stats struct{ Sessions, Calls, Failures int64 }

// Server is one MCP server and the sessions with it. It is safe for concurrent use.
type Server struct {
	spec  Spec
	opt   Options
	scrub *egress.Scrubber
	log   *slog.Logger

	sessions, calls, failures atomic.Int64

	mu      sync.Mutex
	closed  bool
	tenants map[string]*tenantSession // by tenant
	closing sync.WaitGroup
}

// New returns a server without sessions.
func New(spec Spec, opt Options) *Server {
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	var hidden []egress.Secret
	for name, value := range spec.Hidden {
		if len(value) >= minHidden {
			hidden = append(hidden, egress.HiddenValue(name, value))
		}
	}
	if spec.Token != "" {
		hidden = append(hidden, egress.HiddenValue("mcp."+spec.Name+".auth_token", spec.Token))
	}
	return &Server{
		spec: spec, opt: opt, scrub: egress.NewScrubber(hidden...), tenants: map[string]*tenantSession{},
		log: opt.Logger.With("mcp", spec.Name),
	}
}

// Stats returns the counts so far.
func (s *Server) Stats() Stats {
	return Stats{s.sessions.Load(), s.calls.Load(), s.failures.Load()}
}

// Tools lists the current tools of the server. Tools that cannot be pinned are logged and
// left out.
func (s *Server) Tools(ctx context.Context, tenant string) ([]toolpin.Tool, *abi.Error) {
	st, fault := s.tenantSession(tenant)
	if fault != nil {
		return nil, fault
	}
	st.beginCall()
	defer st.endCall()
	ses, end := st.checkedSession(ctx, false)
	if end != nil {
		return nil, end.fault
	}
	return ses.pinnable(), nil
}

// Call calls a tool and returns its result as JSON: the structured content, or the text,
// or both text and a list of the other parts. Errors have a code:
//
//   - DENIED: the definition differs from the pin.
//   - UPSTREAM: the tool or the server reports a failure.
//   - LIMIT: the answer is too large.
//   - UNAVAILABLE: the server cannot be started or reached, or broke off. The
//     call may have been carried out if the text says so.
//   - DEADLINE, CANCELLED: ctx ended.
//
// Neither result nor error contains a hidden value.
func (s *Server) Call(ctx context.Context, c Call) (json.RawMessage, *abi.Error) {
	s.calls.Add(1)
	answer, fault := s.call(ctx, c)
	if fault != nil {
		s.failures.Add(1)
	}
	return answer, fault
}

func (s *Server) call(ctx context.Context, c Call) (json.RawMessage, *abi.Error) {
	st, fault := s.tenantSession(c.Tenant)
	if fault != nil {
		return nil, fault
	}
	st.beginCall()
	defer st.endCall()
	if fault := st.acquireSlot(ctx, c.Tool); fault != nil {
		return nil, fault
	}
	defer func() { <-st.slots }()
	c.Wait = c.Wait && s.spec.URL != ""
	var before *abi.Error
	for {
		answer, end := st.attempt(ctx, &c)
		if end == nil {
			return answer, nil
		}
		if before != nil && end.fault.Code == abi.CodeDeadline {
			end.fault.Message += "; the attempt before: " + before.Message
		}
		if !end.again || before != nil && !c.Wait || st.waitBackoff(ctx, c.Wait) != nil {
			return nil, end.fault
		}
		before = end.fault
	}
}

func (s *Server) tenantSession(tenant string) (*tenantSession, *abi.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, s.fault(abi.CodeUnavailable, "closed", "it was taken out of the file, or its table was changed")
	}
	st := s.tenants[tenant]
	if st == nil {
		st = &tenantSession{server: s, tenant: tenant, opening: make(chan struct{}, 1), slots: make(chan struct{}, maxCalls)}
		s.tenants[tenant] = st
	}
	return st, nil
}

// Close ends all sessions and waits for their end. Running calls fail.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	seats := s.tenants
	s.tenants = map[string]*tenantSession{}
	s.mu.Unlock()
	for _, st := range seats {
		s.closing.Go(st.close)
	}
	s.closing.Wait()
	return nil
}

// ForgetTenant ends the session of a tenant, without waiting for its end.
func (s *Server) ForgetTenant(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.tenants[tenant]
	if delete(s.tenants, tenant); st != nil && !s.closed {
		s.closing.Go(st.close)
	}
}

// runBackground runs f, and Close waits for it. On a closed server it does nothing.
func (s *Server) runBackground(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closing.Go(f)
	}
}

// fault returns an error that names the server.
func (s *Server) fault(code abi.Code, reason, format string, args ...any) *abi.Error {
	return abi.Errorf(code, abi.OpAction, reason, "MCP server %q: %s", s.spec.Name, s.scrub.Text(fmt.Sprintf(format, args...)))
}

// toolFault returns an error that names the server and one of its tools.
func (s *Server) toolFault(code abi.Code, reason, tool, format string, args ...any) *abi.Error {
	return abi.Errorf(code, abi.OpAction, reason, "tool %q of MCP server %q: %s", tool, s.spec.Name, s.scrub.Text(fmt.Sprintf(format, args...)))
}
