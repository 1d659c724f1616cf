package definition

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"

	"skep/abi"
	"skep/host/internal/definition/config"
	"skep/host/internal/pathcheck"
	"skep/host/internal/schema"
	"skep/host/internal/turn/capability"
	"skep/host/internal/turn/egress"
	"skep/host/internal/turn/mcp"
	"skep/host/internal/turn/mcp/toolpin"
)

// ToolFaults lists what is wrong with a file's MCP servers and with the actions on their
// tools. It calls no server.
func ToolFaults(cfg *config.Config) (faults config.Faults) {
	for _, m := range cfg.MCP {
		if err := serverFault(m); err != nil {
			faults = append(faults, cfg.Fault(err.Error(), "mcp", m.Name))
		}
	}
	for _, a := range cfg.Actions {
		if a.Source.Kind != config.SourceMCP {
			continue
		}
		if _, err := schema.CompileTool(a.Name, a.Parameters); err != nil {
			faults = append(faults, cfg.Fault(fmt.Sprintf("the parameters of action %q cannot be checked: %v; give it parameters of your own", a.Name, err), "actions", a.Name, "source"))
		}
	}
	return faults
}

// CheckTool is the fault of a tool's input schema, nil if calls can be checked.
func CheckTool(t toolpin.Tool) error {
	_, err := schema.CompileTool(t.Name, t.InputSchema)
	return err
}

// CheckToolCall checks the arguments of a call as the host checks an agent's call. Without
// a usable input schema it is nil.
func CheckToolCall(t toolpin.Tool, args json.RawMessage) error {
	p, err := schema.CompileTool(t.Name, t.InputSchema)
	if err != nil {
		return nil
	}
	return p.Check(args)
}

// serverFault is what is wrong with the program or URL of a server.
func serverFault(m config.MCP) error {
	if len(m.Command) > 0 {
		if err := pathcheck.File(m.Command[0]); err != nil {
			return fmt.Errorf("the program of [mcp.%s]: %w", m.Name, err)
		}
		return nil
	}
	g, err := egress.ParseGrant(m.URL)
	if err == nil && g.Private() && !m.AllowPrivate {
		err = fmt.Errorf("%s is a private address; it takes allow_private = true in [mcp.%s]", m.URL, m.Name)
	}
	if err != nil {
		return fmt.Errorf("url: %w", err)
	}
	if token := m.AuthToken.Reveal(); token != "" {
		if _, err := egress.NewSecret("auth_token", token, "Authorization", m.URL); err != nil {
			return fmt.Errorf("the auth_token of [mcp.%s] cannot be sent: %w", m.Name, err)
		}
	}
	return nil
}

// inherited are the host's environment variables that a server's program gets. All others
// come from the file.
var inherited = [...]string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR"}

// serverSpec is the spec of a server. Its program runs in the directory of the file.
func serverSpec(cfg *config.Config, m config.MCP, env func(string) (string, bool)) mcp.Spec {
	spec := mcp.Spec{
		Name: m.Name, Command: m.Command, Dir: cfg.Dir, URL: m.URL, Token: m.AuthToken.Reveal(), Private: m.AllowPrivate,
		Hidden: map[string]string{}, Timeout: m.Timeout, IdleTimeout: m.Idle, MaxResult: int64(m.MaxResult),
	}
	own := map[string]bool{}
	for _, v := range m.Env {
		own[v.Name] = true
		spec.Env = append(spec.Env, v.Name+"="+v.Value.Reveal())
		if v.Hidden {
			spec.Hidden["mcp."+m.Name+".env."+v.Name] = v.Value.Reveal()
		}
	}
	for _, name := range inherited {
		if env == nil || own[name] {
			continue
		}
		if value, ok := env(name); ok {
			spec.Env = append(spec.Env, name+"="+value)
		}
	}
	return spec
}

// ToolServer makes a client of one server of a file, for commands without a host. Close
// it.
func ToolServer(cfg *config.Config, m config.MCP, guard []string, env func(string) (string, bool), log *slog.Logger, version string) *mcp.Server {
	return mcp.New(serverSpec(cfg, m, env), mcp.Options{Guard: guard, Logger: log, Version: version})
}

// toolServers holds the MCP servers of the file in force, across reloads. It is safe for
// concurrent use.
type toolServers struct {
	opt mcp.Options
	env func(string) (string, bool)

	mu     sync.Mutex
	open   map[string]toolServer // of the file in force, by name
	closed mcp.Stats             // sum over the closed servers
}

// toolServer is a server with the spec it was made from.
type toolServer struct {
	*mcp.Server
	spec mcp.Spec
}

func newToolServers(opt mcp.Options, env func(string) (string, bool)) *toolServers {
	return &toolServers{opt: opt, env: env, open: map[string]toolServer{}}
}

// prepare returns the servers of a file: the open server where the spec is the same, a new
// one otherwise. It starts nothing.
func (t *toolServers) prepare(cfg *config.Config) map[string]toolServer {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := map[string]toolServer{}
	for _, m := range cfg.MCP {
		spec := serverSpec(cfg, m, t.env)
		if has, ok := t.open[m.Name]; ok && reflect.DeepEqual(has.spec, spec) {
			all[m.Name] = has
			continue
		}
		all[m.Name] = toolServer{mcp.New(spec, t.opt), spec}
	}
	return all
}

// activate puts servers in force and closes the others.
func (t *toolServers) activate(all map[string]toolServer) error {
	t.mu.Lock()
	before := t.open
	t.open = all
	for name, s := range before {
		if all[name].Server != s.Server {
			t.closed = addStats(t.closed, s.Stats())
		}
	}
	t.mu.Unlock()
	return closeExcept(before, all)
}

// discard closes the servers that are not in force.
func (t *toolServers) discard(all map[string]toolServer) error {
	t.mu.Lock()
	open := t.open
	t.mu.Unlock()
	return closeExcept(all, open)
}

// closeExcept closes the servers that are not in kept.
func closeExcept(servers, kept map[string]toolServer) error {
	var errs []error
	for name, s := range servers {
		if kept[name].Server != s.Server {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

func addStats(a, b mcp.Stats) mcp.Stats {
	return mcp.Stats{Sessions: a.Sessions + b.Sessions, Calls: a.Calls + b.Calls, Failures: a.Failures + b.Failures}
}

// closeTenant ends the sessions of an erased tenant.
func (t *toolServers) closeTenant(tenant string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.open {
		s.ForgetTenant(tenant)
	}
}

func (t *toolServers) stats() mcp.Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := t.closed
	for _, s := range t.open {
		sum = addStats(sum, s.Stats())
	}
	return sum
}

// serversBySource are the servers of a file's MCP actions, by the source of the action.
func serversBySource(cfg *config.Config, servers map[string]toolServer) map[string]*mcp.Server {
	all := map[string]*mcp.Server{}
	for _, a := range cfg.Actions {
		if server, _, _ := strings.Cut(a.Source.Ref, "/"); a.Source.Kind == config.SourceMCP {
			all[a.Source.Ref] = servers[server].Server
		}
	}
	return all
}

// bindTool makes an action on an MCP tool. The server is nil for an action of an older
// definition whose tool the file names no more.
func bindTool(a config.Action, server *mcp.Server) *capability.Action {
	bound := &capability.Action{Name: a.Name, Timeout: a.Timeout, Check: toolCheckOf(a)}
	bound.Allow.RetryInDoubt = a.Allow.RetryInDoubt || a.RepeatableByID // the session with the server has whether it finds repeats
	_, tool, _ := strings.Cut(a.Source.Ref, "/")
	bound.Host = func(ctx context.Context, c capability.HostCall) (json.RawMessage, *abi.Error) {
		if server == nil {
			return nil, abi.Errorf(abi.CodeDenied, abi.OpAction, "source", "the operator's file does not have the action %q any more", a.Name)
		}
		args := c.Args
		if len(args) == 0 || string(args) == "null" {
			args = json.RawMessage("{}")
		}
		return server.Call(ctx, mcp.Call{
			Tenant: c.Tenant, Tool: tool, Pin: a.SHA256, Args: args, Meta: metaOf(c),
			Repeatable: a.Allow.RetryInDoubt, RepeatableByID: a.RepeatableByID, InDoubt: c.Retry, Wait: true,
		})
	}
	return bound
}

// metaOf are the members of _meta that a tool call bears: the trace of the turn
// (https://modelcontextprotocol.io/seps/414-request-meta), and the id by which the MCP
// gateway of another host finds a repeat of the call.
func metaOf(c capability.HostCall) map[string]any {
	meta := map[string]any{mcp.IDMember: c.Key}
	c.Trace.Fields(func(name, value string) { meta[name] = value })
	return meta
}

// toolCheckOf makes the check of a tool call's arguments.
func toolCheckOf(a config.Action) capability.ArgsCheck {
	p, err := schema.CompileTool(a.Name, a.Parameters)
	if err != nil {
		return func([]byte) error { return err }
	}
	return p.Check
}

// pinnedTool is the tool that callers of an MCP action see: as pinned, or as in the file.
func pinnedTool(a config.Action) abi.Tool {
	return abi.Tool{Name: a.Name, Description: a.Description, Parameters: parametersOf(a, abi.ActionDescriptor{}), Effect: effectOf(a, "")}
}
