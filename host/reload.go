package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"skep/host/internal/config"
	"skep/host/internal/plan"
	"skep/host/internal/rest"
	"skep/host/internal/sandbox"
	"skep/host/internal/swarm"
)

var _ rest.File = (*Host)(nil)

// reading is a file as it is now, beside what runs.
type reading struct {
	cfg *config.Config
	// modules are the digests of its agents' modules, by the agents' names.
	modules map[string]string
	changes []plan.Change
}

// Plan compares the file as it is now with what runs.
func (h *Host) Plan(context.Context) ([]plan.Change, error) {
	next, err := h.reread()
	return next.changes, err
}

func (h *Host) reread() (next reading, err error) {
	if h.opt.Reread == nil {
		return next, conflict("this host was started without a file that could be read again")
	}
	if next.cfg, err = h.opt.Reread(); err != nil {
		return next, conflict("the file is at fault; nothing has changed: %v", err)
	}
	next.modules = map[string]string{}
	shown := next.cfg.Composition()
	for i := range shown.Agents {
		a := &shown.Agents[i]
		if a.SHA256, err = h.digestOf(*a); err != nil {
			return next, conflict("agent %q; nothing has changed: %v", a.Name, err)
		}
		next.modules[a.Name] = a.SHA256
	}
	for i := range shown.Actions {
		a := &shown.Actions[i]
		if !a.Source.Kind.Coded() {
			continue
		}
		if a.SHA256, err = h.digestOf(asAgent(*a)); err != nil {
			return next, conflict("action %q; nothing has changed: %v", a.Name, err)
		}
		next.modules[moduleKey(a.Name)] = a.SHA256
	}
	s := h.defs.current()
	next.changes = plan.Compare(s.file.Config.With(s.own.x), next.cfg.With(shown), reaches)
	return next, nil
}

// digestOf is the digest of a module or program as it lies there now.
func (h *Host) digestOf(a config.Agent) (string, error) {
	if a.Source.Kind == config.SourceExec {
		return CheckProgram(a)
	}
	wasm, err := sandbox.ReadModule(a.Name, a.Source.Path, Caps(h.opt.Config.Limits.Module))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(wasm)
	return hex.EncodeToString(sum[:]), nil
}

// conflict says why the file cannot be taken over.
func conflict(format string, args ...any) error {
	return &swarm.Refusal{Kind: swarm.ErrConflict, Text: fmt.Sprintf(format, args...)}
}

// Reload takes the file over as it is now, all of it or nothing. New modules are
// loaded before anything changes, and hold nobody up.
func (h *Host) Reload(ctx context.Context) ([]plan.Change, error) {
	d := h.defs
	d.reloading.Lock()
	defer d.reloading.Unlock()
	next, err := h.reread()
	if err != nil {
		return nil, err
	}
	var fixed []string
	for _, c := range next.changes {
		if c.Restart {
			fixed = append(fixed, c.Kind+" "+c.Name)
		}
	}
	if len(fixed) > 0 {
		return nil, conflict("nothing has changed, because this takes a restart: %s", strings.Join(fixed, ", "))
	}
	d.expect(next.modules)
	defer d.expect(nil)
	modules, err := h.loadModules(ctx, next.cfg)
	if err == nil {
		err = next.confirm(modules)
	}
	if err != nil {
		return nil, conflict("nothing has changed: %v", err)
	}
	if err := d.adopt(ctx, next.cfg, modules); err != nil {
		return nil, err
	}
	h.peers.take(next.cfg.Peers)
	if h.opt.Level != nil {
		h.opt.Level.Set(next.cfg.Telemetry.Level())
	}
	h.log.Info("took the file over", "config", h.configDigest(), "changes", len(next.changes))
	return next.changes, nil
}

// confirm refuses modules that are others than were expected: whatever is no part
// of what is in force may be closed by a sweep.
func (r reading) confirm(modules map[string]Module) error {
	for name, m := range modules {
		if m.Digest() != r.modules[name] {
			return fmt.Errorf("the module of %s was written to while it was loaded; reload again", holderOf(name))
		}
	}
	return nil
}

// expect keeps sweeps from the modules of a file that is not in force yet, nil for
// none.
func (d *definitions) expect(modules map[string]string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.coming = map[string]bool{}
	for _, digest := range modules {
		d.coming[digest] = true
	}
}

// adopt puts a file in force, with what tenants have loaded until now.
func (d *definitions) adopt(ctx context.Context, cfg *config.Config, modules map[string]Module) error {
	s, err := d.put(ctx, cfg, modules)
	if err != nil {
		return errors.Join(err, d.tools.discard(s.servers))
	}
	return d.tools.keep(s.servers)
}

// put is adopt but for the sessions with MCP servers, whose end nobody waits for.
func (d *definitions) put(ctx context.Context, cfg *config.Config, modules map[string]Module) (state, error) {
	d.change.Lock()
	defer d.change.Unlock()
	s, err := d.next(ctx, cfg, modules)
	if err == nil {
		err = d.swap(s)
	}
	return s, err
}

// swap puts a state in force. What tasks were begun with goes on within what the
// new file grants. The caller holds d.change.
func (d *definitions) swap(s state) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for digest, c := range d.bound {
		if s.bound[digest] == nil {
			s.bound[digest] = s.narrow(*c)
		}
	}
	narrowed := make([]swarm.Definition, 0, len(s.bound))
	for _, c := range s.bound {
		narrowed = append(narrowed, c.def)
	}
	before := d.state
	d.state = s
	d.exec.Bind(d.bindings())
	err := d.swarm.Replace(d.all(), narrowed...)
	if err != nil {
		d.state = before
		d.exec.Bind(d.bindings())
	}
	return err
}
