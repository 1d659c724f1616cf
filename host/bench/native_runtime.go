package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"skep/host/internal/schema"
	"skep/host/internal/store/keyring"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
	"skep/host/internal/turn/capability"
	"skep/host/internal/turn/wasm"
	"skep/spec/mail"
)

// nativeRuntime is the host's runtime and recorder on a sealed store on disk, as a host
// has it, with native agents and without HTTP.
type nativeRuntime struct {
	store *sqlite.Store
	rt    *swarm.Runtime
	end   func() error
}

// runtimeOptions are the parts of a nativeRuntime. Zero values are useful.
type runtimeOptions struct {
	// tenants are the default one without any.
	tenants []string
	agents  map[string]native
	// binding is what all agents are granted; their modules are put in.
	binding capability.Binding
	// seed fills the store before the runtime starts.
	seed func(store *sqlite.Store) error
	// wrap stands between the runtime and the store.
	wrap func(swarm.Store) swarm.Store
}

// openRuntime starts a runtime in a directory of its own. The caller closes it.
func openRuntime(ctx context.Context, c runtimeOptions) (_ *nativeRuntime, err error) {
	dir, err := os.MkdirTemp("", "skep-hive")
	if err != nil {
		return nil, err
	}
	h := &nativeRuntime{end: func() error { return nil }}
	h.store, err = sqlite.Open(ctx, dir, sqlite.Options{Keyring: &keyring.Options{}})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if c.seed != nil {
		err = c.seed(h.store)
	}
	if err == nil {
		err = h.start(ctx, c)
	}
	stop := h.end
	h.end = func() error { return errors.Join(stop(), h.store.Close(), os.RemoveAll(dir)) }
	if err != nil {
		return nil, errors.Join(err, h.end())
	}
	return h, nil
}

func (h *nativeRuntime) start(ctx context.Context, c runtimeOptions) error {
	set, err := schema.Load()
	if err != nil {
		return err
	}
	if c.tenants == nil {
		c.tenants = []string{swarm.DefaultTenant}
	}
	var defs []swarm.Definition
	bindings := map[capability.Agent]capability.Binding{}
	for _, tenant := range c.tenants {
		def := definition(tenant)
		defs = append(defs, def)
		for name, agent := range c.agents {
			c.binding.Module = agent
			bindings[capability.Agent{Tenant: tenant, Swarm: def.Name, Name: name}] = c.binding
		}
	}
	var store swarm.Store = h.store
	if c.wrap != nil {
		store = c.wrap(store)
	}
	h.rt, err = swarm.New(ctx, store, capability.NewExecutor(bindings, nil, wasm.Recipe()), swarm.NoForwarder{}, mailTools{set}, defs, swarm.Options{})
	if err != nil {
		return err
	}
	run, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- h.rt.Run(run, time.Second) }()
	h.end = func() error { cancel(); return <-done }
	return nil
}

// definition is a swarm of an entrypoint and a worker, without limits.
func definition(tenant string) swarm.Definition {
	return swarm.Definition{Tenant: tenant, Name: "hive", Entrypoint: "boss", Agents: []swarm.Agent{
		{Name: "boss", Entrypoint: true, CanComplete: true, Targets: []string{"worker"}},
		{Name: "worker", Targets: []string{"boss"}},
	}}
}

// benchPost is what every message of the benchmark is.
func benchPost(tenant, principal, task string) swarm.Post {
	return swarm.Post{
		Principal: swarm.Principal{Tenant: tenant, Role: mail.RoleUser, ID: principal},
		Swarm:     "hive", Door: "rest", Task: task, Type: mail.Request, Subject: "q", Body: "hello",
	}
}

// ask posts and waits for the answer.
func (h *nativeRuntime) ask(ctx context.Context, p swarm.Post) error {
	receipt, err := h.rt.Submit(ctx, p)
	if err != nil {
		return err
	}
	a, err := h.rt.Wait(ctx, receipt)
	if err == nil && a.State != swarm.StateCompleted {
		err = fmt.Errorf("the task is %s: %s", a.State, a.Body)
	}
	return err
}
