package definition

import (
	"context"

	"skep/abi"
	"skep/host/internal/definition/config"
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
	"skep/host/internal/turn/capability"
	"skep/host/internal/turn/fileaction"
	"skep/host/internal/turn/mcp"
)

// runnable is a composition that can be run.
type runnable struct {
	digest string
	// composition is what was granted when the composition was taken in.
	composition config.Composition
	// operators reports that it is the composition of the operator's file.
	operators bool
	// modules are the modules of its agents and actions, by digest.
	modules map[string]capability.Module
	// def has no tenant.
	def    swarm.Definition
	agents map[string]capability.Binding
}

// resources are what agents reach outside the runtime.
type resources struct {
	web    capability.Fetcher
	models map[string]capability.Model
	// files are the roots of builtin:fs actions, by action.
	files map[string]*fileaction.Directory
	// servers are the MCP servers of the file by name, tools the servers of the file's own
	// MCP actions by source.
	servers map[string]toolServer
	tools   map[string]*mcp.Server
	// act does the actions at partners of gateways; nil does none.
	act GatewayAct
}

// bind translates a composition into a definition of the runtime and bindings of the
// executor, with the part of it that is granted.
func bind(cfg *config.Config, res resources, r runnable, granted config.Composition) *runnable {
	cfg = cfg.With(granted)
	r.def = definitionOf(cfg)
	r.def.Digest = r.digest
	actions, forms := r.bindActions(cfg, res), formsOf(cfg)
	r.agents = make(map[string]capability.Binding, len(cfg.Agents))
	for _, a := range cfg.Agents {
		r.agents[a.Name] = capability.Binding{
			Module: r.modules[a.SHA256], Limits: TurnLimits(a.Limits), Allow: allowOf(cfg, agentGrantee(a)), Fetcher: res.web, Models: res.models,
			Actions: selectActions(actions, a.Actions), ArgsChecks: forms,
		}
	}
	return &r
}

func definitionOf(cfg *config.Config) swarm.Definition {
	def := swarm.Definition{
		Name: cfg.Swarm.Name, Version: cfg.Swarm.Version,
		Description: cfg.Swarm.Description, Keywords: cfg.Swarm.Keywords, Public: cfg.Swarm.Public,
		Entrypoint: cfg.Swarm.Entrypoint, Interswarm: cfg.Swarm.EnableInterswarm, Discovery: cfg.Swarm.AllowAgentDiscovery, Preempt: cfg.Swarm.InterruptMode == config.InterruptPreempt,
		BreakpointTools: cfg.Swarm.BreakpointTools,
		Limits: swarm.Limits{
			TaskMessages: cfg.Limits.TaskMessages, TaskTimeout: cfg.Limits.TaskTimeout,
			Queue: cfg.Limits.Queue, PeerTasks: cfg.Limits.PeerTasks, Instances: cfg.Limits.Instances,
			Spend:          budget(cfg.Limits.TaskTokens, cfg.Limits.TaskUSD),
			AgentRestAfter: cfg.Limits.AgentRestAfter, AgentRest: cfg.Limits.AgentRest,
		},
	}
	for _, a := range cfg.Actions {
		if a.Source.Kind == config.SourceHuman {
			def.Human = append(def.Human, abi.Tool{Name: a.Name, Description: a.Description, Parameters: a.Parameters, Effect: effectOf(a, "")})
		}
	}
	for _, a := range cfg.Agents {
		l := a.Limits
		def.Agents = append(def.Agents, swarm.Agent{
			Name: a.Name, Targets: a.CommTargets, Entrypoint: a.EnableEntrypoint,
			CanComplete: a.CanCompleteTasks, Interswarm: a.EnableInterswarm, Trusted: a.Trusted,
			Expose: a.Expose, Actions: a.Actions, Exclude: a.ExcludeTools, Params: a.Params,
			Limits: swarm.TurnLimits{
				Wall: l.Turn, Fuel: uint64(l.Fuel), Output: int64(l.Output), HostCalls: int64(l.HostCalls),
				Spend: budget(l.Tokens, l.USD),
			},
		})
	}
	return def
}

// forTenant is the definition as a tenant's.
func (r *runnable) forTenant(tenant string) swarm.Definition {
	def := r.def
	def.Tenant = tenant
	return def
}

// missingModule stands for a module that cannot be loaded any more.
type missingModule struct {
	digest string
	err    error
}

// Digest is the digest of the module.
func (m missingModule) Digest() string { return m.digest }

// Turn fails with the reason why the module is missing.
func (m missingModule) Turn(context.Context, turn.Turn) turn.Result {
	return turn.Result{Exit: &turn.Exit{Kind: turn.ExitHost, Message: m.err.Error(), Cause: m.err}}
}
