package host

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"skep/host/internal/api/auth"
	"skep/host/internal/api/rest"
	"skep/host/internal/datadir"
	"skep/host/internal/peer/directory"
	"skep/host/internal/store/cluster"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
	"skep/host/internal/swarm/slot"
)

// leaveTime bounds how long a host that stops lays its work down. Its turns have ended before.
const leaveTime = 10 * time.Second

// takeoverTime is how long the others may take, once a host is silent, to go on with its tasks
// before requests for them are refused.
const takeoverTime = 2 * time.Second

// isShared reports whether other hosts share the server.
func (h *Host) isShared() bool { return h.opt.Config.Cluster.Advertise != "" }

// openShared opens the store on a server beside other hosts, and makes the host one of them.
func (h *Host) openShared(ctx context.Context, opt sqlite.Options) error {
	var joined atomic.Pointer[cluster.Member]
	opt.Level = func() int {
		if m := joined.Load(); m != nil {
			return m.Level()
		}
		return 0
	}
	opt.Begun = func() bool {
		m := joined.Load()
		return m != nil && m.HasBegun()
	}
	var err error
	if h.store, err = datadir.OpenShared(ctx, h.opt.DataDir, h.opt.Config.Store, opt); err != nil {
		return err
	}
	prior, err := datadir.PriorLife(h.opt.DataDir)
	if err != nil {
		return err
	}
	h.life = datadir.NewLife(h.opt.DataDir)
	c := h.opt.Config.Cluster
	h.member, err = cluster.Join(ctx, cluster.Options{
		Life: h.life, Prior: prior, Swarm: h.opt.Config.Swarm.Name,
		DSN: h.opt.Config.Store.DSN.Reveal(), HID: h.store.HID(), Address: c.Advertise, Beat: c.Beat, TTL: c.TTL, Version: h.opt.Version, Logger: h.logOf("store"),
	})
	joined.Store(h.member)
	return err
}

// shareConfig makes all hosts that share the server run the same configuration.
func (h *Host) shareConfig() {
	if h.member != nil {
		h.member.ShareConfig(h.definitions)
	}
}

// shareLoaded makes the definitions that came over the network the same on all hosts that share the server.
func (h *Host) shareLoaded() {
	if h.member != nil {
		h.member.Watch(sqlite.LoadedVersion, h.definitions.Refresh)
	}
}

// shareLoads makes the limits that all hosts hold together count what other hosts have.
func (h *Host) shareLoads() {
	if h.member != nil {
		h.member.ShareLoads(h.swarm.SharedLoads)
	}
}

// agree is [definition.Options.Agree].
func (h *Host) agree() func(context.Context, map[string]string) error {
	if h.member == nil {
		return nil
	}
	return h.member.AgreeConfig
}

// shareTokens makes all hosts that share the server have the same tokens.
func (h *Host) shareTokens() {
	if h.member == nil {
		return
	}
	h.member.Watch(sqlite.TokensVersion, h.tokens.Refresh)
	h.tokens.Share(auth.TokenSharing{
		Find:      h.store.FindToken,
		IsCurrent: func() bool { return h.member.IsCurrent(sqlite.TokensVersion) },
	})
}

// shareQuarantine makes all hosts that share the server have the same agents in quarantine.
func (h *Host) shareQuarantine() {
	if h.member != nil {
		h.member.Watch(sqlite.QuarantineVersion, h.quarantine.Refresh)
	}
}

// signingKey is the key that signs for this host, or for all hosts that share the server.
func (h *Host) signingKey() *directory.SigningKey {
	opt := directory.SigningKeyOptions{Dir: h.opt.DataDir, Audit: h.audit, Logger: h.logOf("peers")}
	if s := h.store.Secrets(); s != nil {
		opt.Shared = s
	}
	key := directory.NewSigningKey(opt)
	if h.member != nil {
		h.member.Watch(sqlite.SecretsVersion, func(ctx context.Context) error {
			return errors.Join(key.Refresh(ctx), h.peers.Refresh(ctx))
		})
	}
	return key
}

// sharing is what the runtime needs of the other hosts.
type sharing struct {
	*cluster.Member
	store *sqlite.Store
}

// Claim implements [swarm.Cluster].
func (s sharing) Claim(ctx context.Context, slots []slot.Slot) ([]swarm.RunningTask, error) {
	return s.store.Claim(ctx, slots)
}

// GrantSpend implements [swarm.Cluster].
func (s sharing) GrantSpend(ctx context.Context, tenant string, day int64, least, bound swarm.Spend) (granted, rest swarm.Spend, err error) {
	return s.store.GrantSpend(ctx, tenant, day, least, bound)
}

// CountRunning implements [swarm.Cluster].
func (s sharing) CountRunning(ctx context.Context, tenants []string) (map[string]int, error) {
	return s.store.CountRunning(ctx, tenants)
}

// Deaths implements [swarm.Cluster].
func (s sharing) Deaths() map[swarm.TurnID]swarm.Deaths {
	found := s.Member.Deaths()
	out := make(map[swarm.TurnID]swarm.Deaths, len(found))
	for id, d := range found {
		out[id] = swarm.Deaths(d)
	}
	return out
}

// runSet is the running set for the runtime. Where hosts share the work each sees the others', and
// what this one did when it died is told to them.
func (h *Host) runSet(ctx context.Context) (swarm.RunSet, error) {
	if h.member == nil {
		return h.running, nil
	}
	prior, life := h.running.PriorLife(), h.running.Life()
	if h.running.PriorEnded() {
		if err := h.member.ForgetLife(ctx, prior[:]); err != nil {
			return nil, fmt.Errorf("note that no turn computed when this host ended: %w", err)
		}
	}
	suspects := slices.Collect(maps.Keys(h.running.Suspects()))
	if err := h.member.NoteDeath(ctx, prior[:], suspects); err != nil {
		return nil, fmt.Errorf("note which turns computed when this host ended: %w", err)
	}
	for _, id := range suspects {
		h.running.Forget(id)
	}
	// Whoever takes the slots of the life before has to know of its death.
	if err := h.member.FencePrior(ctx); err != nil {
		return nil, fmt.Errorf("free the slots that this host had when it ended: %w", err)
	}
	if err := datadir.KeepLife(h.opt.DataDir, h.life); err != nil {
		return nil, err
	}
	return h.member.Share(h.running, life[:]), nil
}

// clock returns the clock by which tasks go, nil for this host's own: hosts that share the server go by the server's.
func (h *Host) clock() func() time.Time {
	if h.member == nil {
		return nil
	}
	return h.member.Now
}

// cluster returns the other hosts for the runtime, nil for none.
func (h *Host) cluster() swarm.Cluster {
	if h.member == nil {
		return nil
	}
	return sharing{h.member, h.store}
}

// countHosts counts the hosts that share the server, nil for a host that shares it with no other.
func (h *Host) countHosts() func() int {
	if h.member == nil {
		return nil
	}
	return h.member.Hosts
}

// owners finds the hosts of tasks for the REST interface.
type owners struct {
	*cluster.Member
	hid int64
}

// Owner implements [rest.Owners].
func (o owners) Owner(task swarm.TaskKey) (url string, ok bool) {
	place, ok := o.Member.Owner(swarm.SlotOf(task))
	if place.HID == o.hid {
		return "", ok
	}
	return place.Address, ok
}

// others are the other hosts for the REST interface, nil for none.
func (h *Host) others(ctx context.Context) (*rest.OtherHosts, error) {
	if h.member == nil {
		return nil, nil
	}
	secret, err := h.store.Secret(ctx)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("skep hop"))
	c := h.opt.Config.Cluster
	return rest.NewOtherHosts(owners{h.member, h.store.HID()}, mac.Sum(nil), c.TTL+c.Beat+takeoverTime), nil
}

// roster is what operators see of the hosts.
type roster struct {
	member *cluster.Member
	hid    int64
}

// Hosts implements [rest.Cluster].
func (r roster) Hosts() (list []rest.ClusterHost, level int) {
	hosts, level := r.member.List()
	for _, h := range hosts {
		list = append(list, rest.ClusterHost{
			ID: h.HID, Address: h.Address, Version: h.Version, Features: h.Features, Slots: h.Slots, Draining: h.Draining,
			Silent: h.Silent, Self: h.HID == r.hid,
		})
	}
	return list, level
}

// Drain implements [rest.Cluster].
func (r roster) Drain(ctx context.Context, id int64) error {
	err := r.member.Drain(ctx, id)
	switch {
	case errors.Is(err, cluster.ErrNoHost):
		return rest.ErrNoClusterHost
	case errors.Is(err, cluster.ErrLastHost):
		return rest.ErrLastClusterHost
	case err != nil:
		return fmt.Errorf("%w: %w", swarm.ErrUnavailable, err)
	}
	return nil
}

// Counts implements [rest.Cluster].
func (r roster) Counts() rest.ClusterCounts { return rest.ClusterCounts(r.member.Counts()) }

// Finalize implements [rest.Cluster].
func (r roster) Finalize(ctx context.Context) (level int, err error) {
	if level, err = r.member.Finalize(ctx); err != nil {
		return 0, fmt.Errorf("%w: %w", swarm.ErrUnavailable, err)
	}
	return level, nil
}

// roster returns what operators see of the hosts, nil for a host that shares its store with no other.
func (h *Host) roster() rest.Cluster {
	if h.member == nil {
		return nil
	}
	return roster{h.member, h.store.HID()}
}

// Why a host works on nothing.
var (
	errNoTasks = errors.New("the host has no part of the tasks yet")
	errDrained = errors.New("the host is drained: it takes no tasks until it is started again")
)

// ready returns why the host takes no work, or nil.
func (h *Host) ready(ctx context.Context) error {
	switch {
	case h.member == nil || h.member.Count() > 0:
		return h.store.Ready(ctx)
	case h.member.IsDraining():
		return errDrained
	}
	return cmp.Or(h.member.Deviation(), errNoTasks)
}

// errFenced: the other hosts have gone on without this one.
var errFenced = errors.New("this host gave no sign of life for longer than [cluster] ttl, and the other hosts have taken its tasks: start it again")

// explainFence adds to the error of a fenced host what that means.
func explainFence(err error) error {
	if errors.Is(err, cluster.ErrFenced) {
		return fmt.Errorf("%w: %w", errFenced, err)
	}
	return err
}

// explainWrite adds to the error of a fenced write what it means where hosts share the server: it may come
// before the sign of life that finds the same. A server that has lost writes says so itself.
func (h *Host) explainWrite(err error) error {
	if h.isShared() && errors.Is(err, swarm.ErrFenced) && !errors.Is(err, errFenced) && !errors.Is(err, sqlite.ErrLost) {
		return fmt.Errorf("%w: %w", errFenced, err)
	}
	return err
}

// moves is the work of slots.
type moves struct {
	*swarm.Runtime
	store *sqlite.Store
}

// Ended implements [cluster.Moves]. Turns end, and no write is waited for: its connection may lose all packets.
func (m moves) Ended(err error) {
	m.Runtime.End(explainFence(err))
	m.store.StopWaiting()
}

// runShared shares the work with the other hosts until the last turn has ended.
func (h *Host) runShared(ctx context.Context, turnsEnded <-chan struct{}) error {
	if h.member == nil {
		return nil
	}
	defer context.AfterFunc(ctx, h.member.Retire)()
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go func() {
		<-turnsEnded
		stop()
	}()
	work := moves{h.swarm, h.store}
	err := explainFence(h.member.Run(ctx, work))
	if errors.Is(err, errFenced) {
		return err
	}
	leaving, done := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer done()
	<-turnsEnded
	h.running.EndLife()                                     // the others may not be told
	defer context.AfterFunc(leaving, h.store.StopWaiting)() // a write heeds no context once it is handed over
	saved := h.tokens.Save(leaving)                         // one that has left writes nothing
	return errors.Join(err, saved, h.member.Leave(leaving, work))
}

// saveTokens writes which tokens were used, unless the server is away for long. A use after the host has left
// the others is not written.
func (h *Host) saveTokens() error {
	ctx, done := context.WithTimeout(context.Background(), leaveTime)
	defer done()
	defer context.AfterFunc(ctx, h.store.StopWaiting)()
	err := h.tokens.Save(ctx)
	if h.member != nil && errors.Is(err, swarm.ErrFenced) {
		return nil
	}
	return err
}
