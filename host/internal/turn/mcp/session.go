package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"skep/abi"
	"skep/host/internal/turn/mcp/toolpin"
)

// Protocol versions to open a session with: first the last version with the initialize
// handshake, which every server supports, then the newest for servers that have dropped
// the handshake.
const (
	handshakeVersion = "2025-11-25"
	latestVersion    = ""
)

// Limits of a list of tools.
const (
	maxPages = 64
	maxList  = 4 << 20 // bytes
)

// maxListAge is how long a list of tools is used. Servers need not announce changes.
const maxListAge = time.Minute

// session is an open session. It is safe for concurrent use.
type session struct {
	server *Server
	tenant string
	conn   *filteredConn
	mcp    *sdk.ClientSession
	// findsRepeats is set if the server has declared [IDMember].
	findsRepeats bool

	mu         sync.Mutex
	tools      []toolpin.Tool
	unusable   map[string]string // reasons why tools cannot be pinned, by name
	checked    time.Time
	unanswered bool // a call got no answer
	reported   map[string]bool
}

// openSession opens a session and reads the list of tools.
func (s *Server) openSession(ctx context.Context, tenant string) (*session, *callFailure) {
	opening, cancel := context.WithTimeout(ctx, s.spec.Timeout)
	defer cancel()
	ses, network, err := s.handshake(opening, tenant, handshakeVersion)
	if serverError(err) != nil {
		ses, network, err = s.handshake(opening, tenant, latestVersion)
	}
	if err == nil {
		if err = ses.readTools(opening); err != nil {
			network = ses.conn.networkError()
			why := ses.conn.failureReason()
			ses.conn.fail(err)
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
		return nil, &callFailure{fault: s.contextError(ctx, "")}
	case opening.Err() != nil:
		return nil, &callFailure{
			fault: s.fault(abi.CodeUnavailable, "timeout", "it did not answer within %v, the timeout of [mcp.%s]%s", s.spec.Timeout, s.spec.Name, programWords(err)),
			again: true,
		}
	}
	end := &callFailure{fault: s.fault(abi.CodeUnavailable, "unreachable", "%s", s.scrub.Text(err.Error()))}
	if network != nil && serverError(err) == nil {
		end.again, end.wait = true, network.wait
	}
	return nil, end
}

// programWords returns the last output of a program that did not start in time.
func programWords(err error) string {
	if text := err.Error(); strings.HasPrefix(text, "; ") {
		return text
	}
	return ""
}

// handshake connects and initializes the session. network is the cause of an error if it is one of
// the network.
func (s *Server) handshake(ctx context.Context, tenant, version string) (ses *session, network *networkError, err error) {
	w, err := s.connect()
	if err != nil {
		return nil, nil, err
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "skep", Version: s.opt.Version}, &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{},
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
	})
	stop := context.AfterFunc(ctx, func() { w.fail(ctx.Err()) }) // before the library closes it
	cs, err := client.Connect(ctx, w, &sdk.ClientSessionOptions{ProtocolVersion: version})
	stop()
	if err != nil {
		broke := w.failureReason()
		w.fail(err)
		_ = w.Close()
		if ctx.Err() != nil && w.program != nil {
			return nil, nil, errors.New(w.program.LastOutput())
		}
		if broke != "" && serverError(err) == nil {
			return nil, w.networkError(), errors.New(w.failureText(broke))
		}
		return nil, w.networkError(), err
	}
	_, findsRepeats := cs.InitializeResult().Capabilities.Experimental[IDMember]
	return &session{server: s, tenant: tenant, conn: w, mcp: cs, findsRepeats: findsRepeats, reported: map[string]bool{}}, nil, nil
}

// close ends the session and waits until nothing of it runs.
func (ses *session) close() {
	_ = ses.conn.Close() // first, so that a server that does not answer delays nothing
	_ = ses.mcp.Close()
}

// stale reports whether the list of tools must be read again.
func (ses *session) stale() bool {
	ses.mu.Lock()
	defer ses.mu.Unlock()
	return ses.unanswered || ses.conn.toolsChanged.Load() || time.Since(ses.checked) > maxListAge
}

// refreshTools reads the list of tools again.
func (ses *session) refreshTools(ctx context.Context) *abi.Error {
	reading, cancel := context.WithTimeout(ctx, ses.server.spec.Timeout)
	defer cancel()
	if err := ses.readTools(reading); err != nil {
		ses.conn.fail(err)
		return ses.server.fault(abi.CodeUnavailable, "list", "%v", err)
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

// readTools reads the whole list.
func (ses *session) readTools(ctx context.Context) error {
	ses.conn.toolsChanged.Store(false) // a change from here on belongs to the next reading
	var tools []toolpin.Tool
	odd, cursor, size := map[string]string{}, "", 0
	for n := 0; ; n++ {
		a := &pendingRequest{maxResult: maxList}
		_, err := ses.mcp.ListTools(ses.conn.withPending(ctx, a), &sdk.ListToolsParams{Cursor: cursor})
		ses.conn.forgetRequest(a)
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
	ses.setTools(tools, odd)
	return nil
}

// setTools replaces the list. Tools with the same name are unusable, because they cannot
// be told apart.
func (ses *session) setTools(tools []toolpin.Tool, odd map[string]string) {
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
		ses.server.log.Warn("a tool cannot be used", "tool", sanitize(name, 140), "why", ses.server.scrub.Text(sanitize(why, maxText)))
	}
	ses.mu.Lock()
	defer ses.mu.Unlock()
	ses.tools, ses.unusable, ses.checked, ses.unanswered = tools, odd, time.Now(), false
}

func (ses *session) pinnable() []toolpin.Tool {
	ses.mu.Lock()
	defer ses.mu.Unlock()
	return slices.Clone(ses.tools)
}

// checkPin refuses a call of a tool whose definition differs from the pin.
func (ses *session) checkPin(c Call) *abi.Error {
	ses.mu.Lock()
	t, there := toolpin.Find(ses.tools, c.Tool)
	why := ses.unusable[c.Tool]
	first := !ses.reported[c.Tool]
	good := there && t.SHA256 == c.Pin
	if !good {
		ses.reported[c.Tool] = true
	}
	ses.mu.Unlock()
	if good {
		return nil
	}
	if first {
		ses.server.log.Warn("a tool is not as it was pinned, and is refused", "tool", c.Tool, "tenant", ses.tenant, "there", there)
		if ses.server.opt.OnToolChanged != nil {
			ses.server.opt.OnToolChanged(ses.tenant, ses.server.spec.Name, c.Tool)
		}
	}
	switch {
	case there:
		return ses.server.fault(abi.CodeDenied, "changed", "the definition of tool %q changed since it was pinned; see `skep mcp pin %s %s`", c.Tool, ses.server.spec.Name, c.Tool)
	case why != "":
		return ses.server.fault(abi.CodeDenied, "changed", "the definition of tool %q changed since it was pinned, and cannot be used: %s", c.Tool, why)
	}
	return ses.server.fault(abi.CodeDenied, "missing", "it has no tool %q any more; see `skep mcp tools %s`", c.Tool, ses.server.spec.Name)
}

// codeUnsent is the library's own error code for an HTTP request without an answer.
const codeUnsent = -32005

// serverError returns the error response of a server, or nil for any other error.
func serverError(err error) *jsonrpc.Error {
	var refused *jsonrpc.Error
	if !errors.As(err, &refused) || refused.Code == codeUnsent {
		return nil
	}
	return refused
}

// saysAgain reports whether a server says, in the data of an error or the _meta of a result, that
// the same call may have another result later.
func saysAgain(said json.RawMessage) bool {
	type member struct {
		Again bool `json:"skep/again"`
	}
	var m struct {
		member
		Meta member `json:"_meta"`
	}
	return json.Unmarshal(said, &m) == nil && (m.Again || m.Meta.Again)
}

// callFailure describes a failed call.
type callFailure struct {
	fault *abi.Error
	// lost is set if no answer came, unsent if the server did not take the call, broken if
	// the session is over.
	lost, unsent, broken bool
	// again is set if another attempt may be made, wait is the pause that the server wants before.
	again bool
	wait  time.Duration
}

// call calls a tool.
func (ses *session) call(ctx context.Context, c Call) (json.RawMessage, *callFailure) {
	s := ses.server
	a := &pendingRequest{maxResult: s.spec.MaxResult}
	_, err := ses.mcp.CallTool(ses.conn.withPending(ctx, a), &sdk.CallToolParams{Meta: maps.Clone(c.Meta), Name: c.Tool, Arguments: c.Args})
	ses.conn.forgetRequest(a)
	refused := serverError(err)
	switch {
	case err == nil && int64(a.size) > s.spec.MaxResult:
		return nil, &callFailure{fault: s.toolFault(abi.CodeLimit, "result", c.Tool, "its answer has %d bytes, at most %d ([mcp.%s] max_result)", a.size, s.spec.MaxResult, s.spec.Name)}
	case err == nil:
		answer, fault := s.callResult(c.Tool, a.result)
		if fault != nil {
			return nil, &callFailure{fault: fault, again: ses.findsRepeats && saysAgain(a.result)}
		}
		return answer, nil
	case ctx.Err() != nil:
		ses.mu.Lock()
		ses.unanswered = true
		ses.mu.Unlock()
		return nil, &callFailure{fault: s.contextError(ctx, c.Tool), broken: ses.conn.broken()}
	case errors.Is(err, sdk.ErrSessionMissing) && !a.sent: // the answer to another call breaks the session, too
		ses.conn.fail(err)
		return nil, &callFailure{fault: s.toolFault(abi.CodeUnavailable, "session", c.Tool, "the server does not know the session any more"), lost: true, unsent: true, broken: true}
	case refused != nil:
		return nil, &callFailure{
			fault:  s.toolFault(abi.CodeUpstream, "refused", c.Tool, "%s (%d)", sanitize(refused.Message, maxText), refused.Code),
			broken: ses.conn.broken(), again: ses.findsRepeats && saysAgain(refused.Data),
		}
	}
	why := strings.ReplaceAll(ses.conn.failureText(err.Error()), "rejected by transport: ", "")
	network := (*networkError)(nil)
	if errors.As(err, &network) && network.unsent {
		return nil, &callFailure{fault: s.toolFault(abi.CodeUnavailable, "unsent", c.Tool, "%s", why), lost: true, unsent: true, wait: network.wait, broken: ses.conn.broken()}
	}
	code, reason := abi.CodeUnavailable, "broken"
	if ses.conn.tooLarge() {
		code, reason = abi.CodeLimit, "result"
	}
	return nil, &callFailure{
		fault: s.toolFault(code, reason, c.Tool, "no answer came, and the call may have been carried out: %s", why),
		lost:  true, broken: ses.conn.broken(),
	}
}
