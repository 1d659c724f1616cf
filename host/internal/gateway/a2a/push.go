package a2a

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/google/uuid"

	"skep/host/internal/api/auth"
	"skep/host/internal/gateway"
	"skep/host/internal/gateway/state"
)

// Limits of push addresses.
const (
	maxPushesOfTask = 8
	maxPushURL      = 2048    // bytes
	maxPushSecret   = 8 << 10 // bytes of a token, of credentials
)

// kindPush is the kind of the records of push addresses.
const kindPush = "push"

// push is the record of one push address: where the states of which task go, and the one
// that was sent last. Nothing else of a push is durable: every attempt reads the task anew.
type push struct {
	Config a2a.PushConfig `json:"config"`
	// Message is the id of the task's exchange, Version the protocol's.
	Message string              `json:"message"`
	Version a2a.ProtocolVersion `json:"version"`
	// Principal and Realm are the caller's, Credential is the digest of what proved him.
	Principal  auth.Principal `json:"principal"`
	Realm      string         `json:"realm,omitempty"`
	Credential auth.Digest    `json:"credential"`
	// Unlisted means that only the host that took the credential can check it again: it is
	// a JSON Web Token or one that an endpoint accepts.
	Unlisted bool `json:"unlisted,omitempty"`
	// Until is when the host stops trying.
	Until time.Time `json:"until"`
	// Pushed is the state that was sent last; see stateMark.
	Pushed string `json:"told,omitempty"`
	// Ended means that nothing more is sent: the task is over.
	Ended bool `json:"ended,omitempty"`
}

// caller is who made the record.
func (p push) caller() gateway.Caller {
	return gateway.Caller{Principal: p.Principal, Realm: p.Realm, Digest: p.Credential}
}

// pushes reports whether callers may have answers pushed.
func (g *Gateway) pushes() bool { return g.Push && g.PushClient != nil }

// checkPush returns why an address cannot be taken.
func (g *Gateway) checkPush(c *a2a.PushConfig) error {
	if !g.pushes() {
		return a2a.NewError(a2a.ErrPushNotificationNotSupported, "this host pushes nothing")
	}
	u, err := url.Parse(c.URL)
	secret := len(c.Token)
	if c.Auth != nil {
		secret = max(secret, len(c.Auth.Credentials), len(c.Auth.Scheme))
	}
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || len(c.URL) > maxPushURL:
		return invalid(fmt.Sprintf("the push url must be an http or https address without a user, of at most %d bytes", maxPushURL))
	case len(c.ID) > maxID || strings.Contains(c.ID, "/"):
		return invalid(fmt.Sprintf("the id of a push configuration must have at most %d bytes and no slash", maxID))
	case secret > maxPushSecret:
		return invalid(fmt.Sprintf("token and credentials of a push configuration must have at most %d KiB", maxPushSecret>>10))
	}
	if g.CheckPush != nil {
		if err := g.CheckPush(c.URL); err != nil {
			return invalid("the push url cannot be called: " + err.Error())
		}
	}
	return nil
}

// pushKey names the record of an address; without id, all of the caller.
func pushKey(c gateway.Caller, task a2a.TaskID, id string) state.Key {
	realm := c.Realm
	if c.IsUser() {
		realm = string(c.Principal.Role) + ":" + c.Principal.ID
	}
	return state.Key{Tenant: c.Principal.Tenant, Gateway: Name, Realm: realm, Kind: kindPush, Name: string(task) + "/" + id}
}

// keepPush stores an address. The same id replaces what it had.
func (h requests) keepPush(ctx context.Context, c *call, x gateway.Exchange, config a2a.PushConfig) (*a2a.PushConfig, error) {
	task := taskID(x.ID)
	config.ID = cmp.Or(config.ID, string(task)) // one address without an id for each task
	config.TaskID, config.Tenant = task, ""
	p := push{
		Config: config, Message: x.ID, Version: c.version,
		Principal: c.caller.Principal, Realm: c.caller.Realm, Credential: c.caller.Digest, Until: time.Now().Add(h.Keep),
		Unlisted: c.caller.Recheck != nil && c.caller.Digest == auth.Digest{},
	}
	key := pushKey(c.caller, task, config.ID)
	others, err := h.pushesOf(ctx, c.caller, task)
	if err != nil {
		return nil, h.protocolError(err)
	}
	if _, replaces := others[key.Name]; len(others) >= maxPushesOfTask && !replaces {
		return nil, unsupported(fmt.Sprintf("the task has %d push configurations, and no more are kept", maxPushesOfTask))
	}
	if err := h.storePush(ctx, key, p, others[key.Name].version); err != nil {
		return nil, h.protocolError(err)
	}
	h.pusher.start(key, c.caller.Recheck)
	return &config, nil
}

// storePush writes a record over the given version.
func (g *Gateway) storePush(ctx context.Context, key state.Key, p push, version int64) error {
	value, err := json.Marshal(p)
	if err != nil {
		return err
	}
	_, err = g.Runtime.State().Put(ctx, state.Record{Key: key, Version: version, Value: value, Expires: p.Until.Add(g.Keep)})
	switch {
	case errors.Is(err, state.ErrFull):
		return unavailable{errors.New("no place for the push configuration: delete some, or let tasks end")}
	case errors.Is(err, state.ErrVersion):
		return unavailable{errors.New("the push configuration was changed at the same time")}
	}
	return err
}

// storedPush is a record with its version.
type storedPush struct {
	push
	version int64
}

func decodePush(r state.Record) (storedPush, error) {
	p := storedPush{version: r.Version}
	return p, json.Unmarshal(r.Value, &p.push)
}

// pushesOf returns the addresses of a task by the names of their records.
func (g *Gateway) pushesOf(ctx context.Context, c gateway.Caller, task a2a.TaskID) (map[string]storedPush, error) {
	of := pushKey(c, task, "")
	list, err := g.Runtime.State().List(ctx, of, of, maxPushesOfTask+1)
	if err != nil {
		return nil, err
	}
	out := map[string]storedPush{}
	for _, r := range list {
		if r.Key.Realm != of.Realm || !strings.HasPrefix(r.Key.Name, of.Name) {
			break
		}
		if out[r.Key.Name], err = decodePush(r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// CreateTaskPushConfig implements [a2asrv.RequestHandler].
func (h requests) CreateTaskPushConfig(ctx context.Context, config *a2a.PushConfig) (*a2a.PushConfig, error) {
	if err := h.checkPush(config); err != nil {
		return nil, err
	}
	c, x, err := h.find(ctx, config.Tenant, config.TaskID)
	if err != nil {
		return nil, err
	}
	if config.ID == "" {
		config.ID = uuid.NewString()
	}
	return h.keepPush(ctx, c, x, *config)
}

// GetTaskPushConfig implements [a2asrv.RequestHandler].
func (h requests) GetTaskPushConfig(ctx context.Context, req *a2a.GetTaskPushConfigRequest) (*a2a.PushConfig, error) {
	c, _, err := h.findPushes(ctx, req.Tenant, req.TaskID)
	if err != nil {
		return nil, err
	}
	record, err := h.Runtime.State().Get(ctx, pushKey(c.caller, req.TaskID, cmp.Or(req.ID, string(req.TaskID))))
	if errors.Is(err, state.ErrNotFound) {
		return nil, a2a.NewError(a2a.ErrTaskNotFound, "no such push configuration")
	}
	if err != nil {
		return nil, h.protocolError(err)
	}
	p, err := decodePush(record)
	return &p.Config, h.protocolError(err)
}

// ListTaskPushConfigs implements [a2asrv.RequestHandler].
func (h requests) ListTaskPushConfigs(ctx context.Context, req *a2a.ListTaskPushConfigRequest) (*a2a.ListTaskPushConfigResponse, error) {
	c, _, err := h.findPushes(ctx, req.Tenant, req.TaskID)
	if err != nil {
		return nil, err
	}
	all, err := h.pushesOf(ctx, c.caller, req.TaskID)
	if err != nil {
		return nil, h.protocolError(err)
	}
	out := &a2a.ListTaskPushConfigResponse{Configs: []*a2a.PushConfig{}}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		config := all[name].Config
		out.Configs = append(out.Configs, &config)
	}
	return out, nil
}

// DeleteTaskPushConfig implements [a2asrv.RequestHandler].
func (h requests) DeleteTaskPushConfig(ctx context.Context, req *a2a.DeleteTaskPushConfigRequest) error {
	c, _, err := h.findPushes(ctx, req.Tenant, req.TaskID)
	if err != nil {
		return err
	}
	key := pushKey(c.caller, req.TaskID, cmp.Or(req.ID, string(req.TaskID)))
	if err := h.Runtime.State().Delete(ctx, key, 0); err != nil {
		return h.protocolError(err)
	}
	h.pusher.followers.Stop(key)
	return nil
}

// findPushes finds the task of a request about push addresses.
func (h requests) findPushes(ctx context.Context, tenant string, id a2a.TaskID) (*call, gateway.Exchange, error) {
	if !h.pushes() {
		return nil, gateway.Exchange{}, a2a.NewError(a2a.ErrPushNotificationNotSupported, "this host pushes nothing")
	}
	return h.find(ctx, tenant, id)
}
