package host

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
	"skep/host/internal/audit"
	"skep/host/internal/capability"
	"skep/host/internal/config"
	"skep/host/internal/egress"
	"skep/host/internal/guard"
	"skep/host/internal/mcpclient"
	"skep/host/internal/rest"
	"skep/host/internal/schema"
	"skep/host/internal/toolpin"
)

// ToolFaults lists what is wrong with a file's MCP servers and with the actions that
// their tools do, without asking any server.
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

// CheckTool says why calls of a tool could not be checked, nil where they can.
func CheckTool(t toolpin.Tool) error {
	_, err := schema.CompileTool(t.Name, t.InputSchema)
	return err
}

// CheckToolCall holds the arguments of a call against the tool's definition, as those of
// an agent's call are. Where the definition cannot be checked, nothing is wrong with them.
func CheckToolCall(t toolpin.Tool, args json.RawMessage) error {
	p, err := schema.CompileTool(t.Name, t.InputSchema)
	if err != nil {
		return nil
	}
	return p.Check(args)
}

// serverFault looks at what stands between host and server.
func serverFault(m config.MCP) error {
	if len(m.Command) > 0 {
		if err := guard.File(m.Command[0]); err != nil {
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

// inherited are the variables that a program gets of the host's own: where programs,
// its home and its language are. Everything else is given to it by the file.
var inherited = [...]string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR"}

// serverSpec is a server as its sessions need it. It runs beside the file.
func serverSpec(cfg *config.Config, m config.MCP, env func(string) (string, bool)) mcpclient.Spec {
	spec := mcpclient.Spec{
		Name: m.Name, Command: m.Command, Dir: cfg.Dir, URL: m.URL, Token: m.AuthToken.Reveal(), Private: m.AllowPrivate,
		Hidden: map[string]string{}, Timeout: m.Timeout, Idle: m.Idle, MaxResult: int64(m.MaxResult),
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

// ToolServer makes a client of one server of a file, for whoever is no host. Close
// it.
func ToolServer(cfg *config.Config, m config.MCP, guard []string, env func(string) (string, bool), log *slog.Logger, version string) *mcpclient.Server {
	return mcpclient.New(serverSpec(cfg, m, env), mcpclient.Options{Guard: guard, Logger: log, Version: version})
}

// toolServers are the MCP servers of files, over reloads too. It is safe for
// concurrent use.
type toolServers struct {
	opt mcpclient.Options
	env func(string) (string, bool)

	mu     sync.Mutex
	open   map[string]toolServer // of the file in force, by name
	before mcpclient.Stats       // of those that were closed
}

// toolServer is a server and what it was made of.
type toolServer struct {
	*mcpclient.Server
	spec mcpclient.Spec
}

func newToolServers(opt mcpclient.Options, env func(string) (string, bool)) *toolServers {
	return &toolServers{opt: opt, env: env, open: map[string]toolServer{}}
}

// of returns the servers of a file: those in force, where nothing has changed, and
// new ones. Nothing is started.
func (t *toolServers) of(cfg *config.Config) map[string]toolServer {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := map[string]toolServer{}
	for _, m := range cfg.MCP {
		spec := serverSpec(cfg, m, t.env)
		if has, ok := t.open[m.Name]; ok && reflect.DeepEqual(has.spec, spec) {
			all[m.Name] = has
			continue
		}
		all[m.Name] = toolServer{mcpclient.New(spec, t.opt), spec}
	}
	return all
}

// keep puts servers in force and closes the others.
func (t *toolServers) keep(all map[string]toolServer) error {
	t.mu.Lock()
	before := t.open
	t.open = all
	for name, s := range before {
		if all[name].Server != s.Server {
			t.before = added(t.before, s.Stats())
		}
	}
	t.mu.Unlock()
	return closeOthers(before, all)
}

// discard closes servers that are not in force.
func (t *toolServers) discard(all map[string]toolServer) error {
	t.mu.Lock()
	open := t.open
	t.mu.Unlock()
	return closeOthers(all, open)
}

// closeOthers closes those of some servers that are not among others.
func closeOthers(some, others map[string]toolServer) error {
	var errs []error
	for name, s := range some {
		if others[name].Server != s.Server {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

func added(a, b mcpclient.Stats) mcpclient.Stats {
	return mcpclient.Stats{Sessions: a.Sessions + b.Sessions, Calls: a.Calls + b.Calls, Failures: a.Failures + b.Failures}
}

// forget ends the sessions of a tenant that was erased.
func (t *toolServers) forget(tenant string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.open {
		s.Forget(tenant)
	}
}

func (t *toolServers) counters() []rest.Counter {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := t.before
	for _, s := range t.open {
		sum = added(sum, s.Stats())
	}
	return []rest.Counter{
		{Name: "skep_mcp_sessions_total", Help: "Sessions with MCP servers that were opened.", Value: sum.Sessions},
		{Name: "skep_mcp_calls_total", Help: "Calls of tools of MCP servers.", Value: sum.Calls},
		{Name: "skep_mcp_failures_total", Help: "Those of them that failed.", Value: sum.Failures},
	}
}

// toolChanged records that a tool is not as it was pinned.
func (h *Host) toolChanged(tenant, server, tool string) {
	err := h.audit.Record(audit.Entry{
		Act: "mcp.changed", Outcome: audit.Refused, Tenant: tenant, Target: server + "/" + tool,
		Reason: "the definition is not the one that was pinned",
	})
	if err != nil {
		h.log.Warn("not recorded in the audit log", "act", "mcp.changed", "err", err)
	}
}

// tools are what a file's own actions name of MCP servers, by their sources.
func tools(cfg *config.Config, servers map[string]toolServer) map[string]*mcpclient.Server {
	all := map[string]*mcpclient.Server{}
	for _, a := range cfg.Actions {
		if server, _, _ := strings.Cut(a.Source.Ref, "/"); a.Source.Kind == config.SourceMCP {
			all[a.Source.Ref] = servers[server].Server
		}
	}
	return all
}

// bindTool makes an action that a tool does. There is no server when the file does
// not name the tool any more: then it is an action of an older definition.
func bindTool(a config.Action, server *mcpclient.Server) *capability.Action {
	bound := &capability.Action{Name: a.Name, Timeout: a.Timeout, Check: toolChecks(a)}
	bound.Allow.RetryInDoubt = a.Allow.RetryInDoubt
	_, tool, _ := strings.Cut(a.Source.Ref, "/")
	bound.Host = func(ctx context.Context, c capability.HostCall) (json.RawMessage, *abi.Error) {
		if server == nil {
			return nil, abi.Errorf(abi.CodeDenied, abi.OpAction, "source", "the operator's file does not have the action %q any more", a.Name)
		}
		args := c.Args
		if len(args) == 0 || string(args) == "null" {
			args = json.RawMessage("{}")
		}
		return server.Call(ctx, mcpclient.Call{Tenant: c.Tenant, Tool: tool, Pin: a.SHA256, Args: args, Repeat: a.Allow.RetryInDoubt})
	}
	return bound
}

// toolChecks make what checks the arguments of calls.
func toolChecks(a config.Action) capability.Form {
	p, err := schema.CompileTool(a.Name, a.Parameters)
	if err != nil {
		return func([]byte) error { return err }
	}
	return p.Check
}

// pinnedTool is an action that a tool does as its callers are shown it: as it was
// pinned, or as the file says.
func pinnedTool(a config.Action) abi.Tool {
	return abi.Tool{Name: a.Name, Description: a.Description, Parameters: parametersOf(a, abi.ActionDescriptor{})}
}
