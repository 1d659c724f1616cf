package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"skep/host/internal/config"
	"skep/host/internal/plan"
	"skep/host/internal/rest"
	"skep/host/internal/sandbox"
	"skep/host/internal/swarm"
)

var _ rest.File = (*Host)(nil)

// Plan compares the file as it is now with what runs.
func (h *Host) Plan(context.Context) ([]plan.Change, error) {
	_, changes, err := h.plan()
	return changes, err
}

func (h *Host) plan() (*config.Config, []plan.Change, error) {
	if h.opt.Reread == nil {
		return nil, nil, conflict("this host was started without a file that could be read again")
	}
	next, err := h.opt.Reread()
	if err != nil {
		return nil, nil, conflict("the file is at fault; nothing has changed: %v", err)
	}
	shown := next.Composition()
	for i := range shown.Agents {
		a := &shown.Agents[i]
		wasm, err := sandbox.ReadModule(a.Name, a.Source.Path, Caps(h.opt.Config.Limits.Module))
		if err != nil {
			return nil, nil, conflict("agent %q; nothing has changed: %v", a.Name, err)
		}
		sum := sha256.Sum256(wasm)
		a.SHA256 = hex.EncodeToString(sum[:])
	}
	s := h.defs.current()
	return next, plan.Compare(s.file.Config.With(s.own.x), next.With(shown), reaches), nil
}

// conflict says why the file cannot be taken over.
func conflict(format string, args ...any) error {
	return &swarm.Refusal{Kind: swarm.ErrConflict, Text: fmt.Sprintf(format, args...)}
}

// Reload takes the file over as it is now, all of it or nothing. New modules are
// loaded before anything changes.
func (h *Host) Reload(ctx context.Context) ([]plan.Change, error) {
	d := h.defs
	d.change.Lock()
	defer d.change.Unlock()
	next, changes, err := h.plan()
	if err != nil {
		return nil, err
	}
	var fixed []string
	for _, c := range changes {
		if c.Restart {
			fixed = append(fixed, c.Kind+" "+c.Name)
		}
	}
	if len(fixed) > 0 {
		return nil, conflict("nothing has changed, because this takes a restart: %s", strings.Join(fixed, ", "))
	}
	modules, err := h.loadModules(ctx, next)
	if err != nil {
		return nil, conflict("nothing has changed: %v", err)
	}
	s, err := d.next(ctx, next, modules)
	if err != nil {
		return nil, err
	}
	if err := d.swap(s); err != nil {
		return nil, err
	}
	h.log.Info("took the file over", "config", h.configDigest(), "changes", len(changes))
	return changes, nil
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
	before := d.state
	d.state = s
	d.exec.Bind(d.bindings())
	err := d.swarm.Replace(d.all())
	if err != nil {
		d.state = before
		d.exec.Bind(d.bindings())
	}
	return err
}
