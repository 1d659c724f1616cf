package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"skep/abi"
	"skep/host/internal/toolpin"
)

// Versions of the protocol that sessions are opened with: the last one that begins
// with a handshake every server knows, and for those that know it no more, the
// newest.
const (
	shaken = "2025-11-25"
	newest = ""
)

// Bounds of a list of tools.
const (
	maxPages = 64
	maxList  = 4 << 20 // bytes
)

// freshFor is how long a list of tools is believed. Servers need not tell that it
// has changed.
const freshFor = time.Minute

// session is an open session. It is safe for concurrent use.
type session struct {
	s      *Server
	tenant string
	wire   *wire
	mcp    *mcp.ClientSession

	mu      sync.Mutex
	tools   []toolpin.Tool
	odd     map[string]string // tools that cannot be pinned, and why
	checked time.Time
	doubted bool // a call got no answer
	told    map[string]bool
}

// open opens a session and reads the list of tools.
func (s *Server) open(ctx context.Context, tenant string) (*session, *abi.Error) {
	opening, cancel := context.WithTimeout(ctx, s.spec.Timeout)
	defer cancel()
	ses, err := s.shake(opening, tenant, shaken)
	if refusal(err) != nil {
		ses, err = s.shake(opening, tenant, newest)
	}
	if err == nil {
		if err = ses.read(opening); err != nil {
			why := ses.wire.reason()
			ses.wire.fail(err)
			ses.close()
			if why != "" {
				err = errors.New(why)
			}
		}
	}
	switch {
	case err == nil:
		s.sessions.Add(1)
		s.log.Info("opened a session", "tenant", tenant, "tools", len(ses.tools))
		return ses, nil
	case ctx.Err() != nil:
		return nil, s.ended(ctx, "")
	case opening.Err() != nil:
		return nil, s.fault(abi.CodeUnavailable, "timeout", "it did not answer within %v, the timeout of [mcp.%s]%s", s.spec.Timeout, s.spec.Name, words(err))
	}
	return nil, s.fault(abi.CodeUnavailable, "unreachable", "%s", s.scrub.Text(err.Error()))
}

// words are what a program said last that did not come up in time.
func words(err error) string {
	if text := err.Error(); strings.HasPrefix(text, "; ") {
		return text
	}
	return ""
}

// shake connects and greets.
func (s *Server) shake(ctx context.Context, tenant, version string) (*session, error) {
	w, err := s.connect()
	if err != nil {
		return nil, err
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "skep", Version: s.opt.Version}, &mcp.ClientOptions{
		Capabilities:   &mcp.ClientCapabilities{},
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	})
	stop := context.AfterFunc(ctx, func() { w.fail(ctx.Err()) }) // before the library closes it
	cs, err := client.Connect(ctx, w, &mcp.ClientSessionOptions{ProtocolVersion: version})
	stop()
	if err != nil {
		broke := w.reason()
		w.fail(err)
		_ = w.Close()
		if ctx.Err() != nil && w.program != nil {
			return nil, errors.New(w.program.LastWords())
		}
		if broke != "" && refusal(err) == nil {
			return nil, errors.New(w.why(broke))
		}
		return nil, err
	}
	return &session{s: s, tenant: tenant, wire: w, mcp: cs, told: map[string]bool{}}, nil
}

// close ends the session and waits until nothing of it runs.
func (ses *session) close() {
	_ = ses.wire.Close() // first: nobody is waited for who does not answer
	_ = ses.mcp.Close()
}

// stale reports whether the list of tools is to be read again.
func (ses *session) stale() bool {
	ses.mu.Lock()
	defer ses.mu.Unlock()
	return ses.doubted || ses.wire.changed.Load() || time.Since(ses.checked) > freshFor
}

// check reads the list again.
func (ses *session) check(ctx context.Context) *abi.Error {
	reading, cancel := context.WithTimeout(ctx, ses.s.spec.Timeout)
	defer cancel()
	if err := ses.read(reading); err != nil {
		ses.wire.fail(err)
		return ses.s.fault(abi.CodeUnavailable, "list", "%v", err)
	}
	return nil
}

// page is one page of a list of tools.
type page struct {
	Tools []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
		Annotations json.RawMessage `json:"annotations"`
	} `json:"tools"`
	NextCursor string `json:"nextCursor"`
}

// read reads the whole list.
func (ses *session) read(ctx context.Context) error {
	ses.wire.changed.Store(false) // what changes from here on is read by the next
	var tools []toolpin.Tool
	odd, cursor, size := map[string]string{}, "", 0
	for n := 0; ; n++ {
		a := &asked{most: maxList}
		_, err := ses.mcp.ListTools(ses.wire.asking(ctx, a), &mcp.ListToolsParams{Cursor: cursor})
		ses.wire.forget(a)
		var p page
		switch {
		case err != nil:
			return fmt.Errorf("it does not list its tools: %w", err)
		case n == maxPages, a.size > maxList, size+a.size > maxList:
			return fmt.Errorf("its list of tools has more than %d pages or %d bytes", maxPages, maxList)
		case json.Unmarshal(a.result, &p) != nil:
			return errors.New("its list of tools is no such list")
		}
		size += a.size
		for _, t := range p.Tools {
			if made, err := toolpin.New(t.Name, t.Description, t.InputSchema, t.Annotations); err == nil {
				tools = append(tools, made)
			} else {
				odd[t.Name] = err.Error()
			}
		}
		if len(tools)+len(odd) > toolpin.MaxTools {
			return fmt.Errorf("it has more than %d tools", toolpin.MaxTools)
		}
		if cursor = p.NextCursor; cursor == "" {
			break
		}
	}
	ses.take(tools, odd)
	return nil
}

// take puts a list in force. Of tools of one name none can be told from another.
func (ses *session) take(tools []toolpin.Tool, odd map[string]string) {
	names := map[string]int{}
	for _, t := range tools {
		names[t.Name]++
	}
	for name, n := range names {
		if n > 1 {
			odd[name] = fmt.Sprintf("the server has %d tools of the name %q", n, name)
		}
	}
	tools = slices.DeleteFunc(tools, func(t toolpin.Tool) bool { return names[t.Name] > 1 })
	for name, why := range odd {
		ses.s.log.Warn("a tool cannot be used", "tool", clip(name, 140), "why", ses.s.scrub.Text(clip(why, maxText)))
	}
	ses.mu.Lock()
	defer ses.mu.Unlock()
	ses.tools, ses.odd, ses.checked, ses.doubted = tools, odd, time.Now(), false
}

func (ses *session) list() []toolpin.Tool {
	ses.mu.Lock()
	defer ses.mu.Unlock()
	return slices.Clone(ses.tools)
}

// pinned refuses a call of a tool that is not as it was pinned.
func (ses *session) pinned(c Call) *abi.Error {
	ses.mu.Lock()
	t, there := toolpin.Find(ses.tools, c.Tool)
	why := ses.odd[c.Tool]
	first := !ses.told[c.Tool]
	good := there && t.SHA256 == c.Pin
	if !good {
		ses.told[c.Tool] = true
	}
	ses.mu.Unlock()
	if good {
		return nil
	}
	if first {
		ses.s.log.Warn("a tool is not as it was pinned, and is refused", "tool", c.Tool, "tenant", ses.tenant, "there", there)
		if ses.s.opt.Changed != nil {
			ses.s.opt.Changed(ses.tenant, ses.s.spec.Name, c.Tool)
		}
	}
	switch {
	case there:
		return ses.s.fault(abi.CodeDenied, "changed", "the definition of tool %q changed since it was pinned; see `skep mcp pin %s %s`", c.Tool, ses.s.spec.Name, c.Tool)
	case why != "":
		return ses.s.fault(abi.CodeDenied, "changed", "the definition of tool %q changed since it was pinned, and cannot be used: %s", c.Tool, why)
	}
	return ses.s.fault(abi.CodeDenied, "missing", "it has no tool %q any more; see `skep mcp tools %s`", c.Tool, ses.s.spec.Name)
}

// codeUnsent is what the library says itself of a request that got no answer over
// HTTP.
const codeUnsent = -32005

// refusal is the error that a server has answered with, nil for every other.
func refusal(err error) *jsonrpc.Error {
	var refused *jsonrpc.Error
	if !errors.As(err, &refused) || refused.Code == codeUnsent {
		return nil
	}
	return refused
}

// ending is how a call has failed.
type ending struct {
	fault *abi.Error
	// lost says that no answer came, unsent that the server has not had the call,
	// broken that the session is over.
	lost, unsent, broken bool
}

// call calls a tool.
func (ses *session) call(ctx context.Context, c Call) (json.RawMessage, *ending) {
	s := ses.s
	a := &asked{most: s.spec.MaxResult}
	_, err := ses.mcp.CallTool(ses.wire.asking(ctx, a), &mcp.CallToolParams{Name: c.Tool, Arguments: c.Args})
	ses.wire.forget(a)
	refused := refusal(err)
	switch {
	case err == nil && int64(a.size) > s.spec.MaxResult:
		return nil, &ending{fault: s.toolFault(abi.CodeLimit, "result", c.Tool, "its answer has %d bytes, at most %d ([mcp.%s] max_result)", a.size, s.spec.MaxResult, s.spec.Name)}
	case err == nil:
		answer, fault := s.answer(c.Tool, a.result)
		if fault != nil {
			return nil, &ending{fault: fault}
		}
		return answer, nil
	case ctx.Err() != nil:
		ses.mu.Lock()
		ses.doubted = true
		ses.mu.Unlock()
		return nil, &ending{fault: s.ended(ctx, c.Tool), broken: ses.wire.broken()}
	case errors.Is(err, mcp.ErrSessionMissing):
		ses.wire.fail(err)
		return nil, &ending{fault: s.toolFault(abi.CodeUnavailable, "session", c.Tool, "the server does not know the session any more"), lost: true, unsent: true, broken: true}
	case refused != nil:
		return nil, &ending{fault: s.toolFault(abi.CodeUpstream, "refused", c.Tool, "%s (%d)", clip(refused.Message, maxText), refused.Code), broken: ses.wire.broken()}
	}
	why := strings.ReplaceAll(ses.wire.why(err.Error()), "rejected by transport: ", "")
	code, reason := abi.CodeUnavailable, "broken"
	if ses.wire.tooLarge() {
		code, reason = abi.CodeLimit, "result"
	}
	return nil, &ending{
		fault: s.toolFault(code, reason, c.Tool, "no answer came, and the call may have been carried out: %s", why),
		lost:  true, broken: ses.wire.broken(),
	}
}
