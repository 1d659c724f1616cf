package host

import (
	"context"

	"skep/abi"
	"skep/host/internal/capability"
	"skep/host/internal/config"
	"skep/host/internal/jail"
	"skep/host/internal/mcpclient"
	"skep/host/internal/sandbox"
	"skep/host/internal/swarm"
)

// composed is a composition that can be run.
type composed struct {
	digest string
	// x is what was granted when it was taken in; own says that it was the
	// operator's.
	x   config.Composition
	own bool
	// modules are those of its agents, by digest.
	modules map[string]capability.Module
	// def is of no tenant.
	def    swarm.Definition
	agents map[string]capability.Binding
}

// outside is what agents reach beyond the host.
type outside struct {
	web    capability.Fetcher
	models map[string]capability.Model
	// files are the roots of actions on files, by the actions' names.
	files map[string]*jail.Jail
	// servers are the MCP servers of the file by name, tools those of them that the
	// file's own actions name, by their sources.
	servers map[string]toolServer
	tools   map[string]*mcpclient.Server
}

// compose translates a composition into the words of the runtime and of the
// executor, with what is granted of it.
func compose(cfg *config.Config, out outside, c composed, granted config.Composition) *composed {
	cfg = cfg.With(granted)
	c.def = definition(cfg)
	c.def.Digest = c.digest
	actions, forms := c.bindActions(cfg, out), formsOf(cfg)
	c.agents = make(map[string]capability.Binding, len(cfg.Agents))
	for _, a := range cfg.Agents {
		c.agents[a.Name] = capability.Binding{
			Module: c.modules[a.SHA256], Limits: TurnLimits(a.Limits), Allow: allow(cfg, agentHolder(a)), Web: out.web, Models: out.models,
			Actions: calledBy(actions, a.Actions), Forms: forms,
		}
	}
	return &c
}

func definition(cfg *config.Config) swarm.Definition {
	def := swarm.Definition{
		Name: cfg.Swarm.Name, Version: cfg.Swarm.Version,
		Description: cfg.Swarm.Description, Keywords: cfg.Swarm.Keywords, Public: cfg.Swarm.Public,
		Entrypoint: cfg.Swarm.Entrypoint, Interswarm: cfg.Swarm.EnableInterswarm, Discovery: cfg.Swarm.AllowAgentDiscovery, Preempt: cfg.Swarm.InterruptMode == config.InterruptPreempt,
		BreakpointTools: cfg.Swarm.BreakpointTools,
		Limits: swarm.Limits{
			TaskMessages: cfg.Limits.TaskMessages, TaskTimeout: cfg.Limits.TaskTimeout,
			Queue: cfg.Limits.Queue, PeerTasks: cfg.Limits.PeerTasks, Instances: cfg.Limits.Instances,
			Spend: budget(cfg.Limits.TaskTokens, cfg.Limits.TaskUSD),
		},
	}
	for _, a := range cfg.Actions {
		if a.Source.Kind == config.SourceHuman {
			def.Human = append(def.Human, abi.Tool{Name: a.Name, Description: a.Description, Parameters: a.Parameters})
		}
	}
	for _, a := range cfg.Agents {
		l := a.Limits
		def.Agents = append(def.Agents, swarm.Agent{
			Name: a.Name, Targets: a.CommTargets, Entrypoint: a.EnableEntrypoint,
			CanComplete: a.CanCompleteTasks, Interswarm: a.EnableInterswarm, Trusted: a.Trusted,
			Actions: a.Actions, Exclude: a.ExcludeTools, Params: a.Params,
			Limits: swarm.TurnLimits{
				Wall: l.Turn, Fuel: uint64(l.Fuel), Output: int64(l.Output), HostCalls: int64(l.HostCalls),
				Spend: budget(l.Tokens, l.USD),
			},
		})
	}
	return def
}

// of gives a composition to a tenant.
func (c *composed) of(tenant string) swarm.Definition {
	def := c.def
	def.Tenant = tenant
	return def
}

// lost stands for a module that cannot be loaded any more.
type lost struct {
	digest string
	err    error
}

// Digest is what the module had.
func (m lost) Digest() string { return m.digest }

// Turn says why there is none.
func (m lost) Turn(context.Context, sandbox.Turn) sandbox.Result {
	return sandbox.Result{Exit: &sandbox.Exit{Kind: sandbox.ExitHost, Message: m.err.Error(), Cause: m.err}}
}
