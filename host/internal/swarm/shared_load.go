package swarm

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
)

// loadName is the name by which hosts show each other what they have of a limit. It names no tenant in the store.
func loadName(kind string, parts ...string) string {
	named := []byte(kind)
	for _, part := range parts {
		named = append(binary.AppendUvarint(named, uint64(len(part))), part...)
	}
	sum := sha256.Sum256(named)
	return string(sum[:16])
}

func tenantQueueLoadName(tenant string) string { return loadName("tenant queue", tenant) }

// loadName is the name of the messages that wait in an instance.
func (k InstanceKey) loadName() string { return loadName("queue", k.Tenant, k.Swarm, k.Instance) }

// loadName is the name of the instances that were made of a swarm.
func (k swarmKey) loadName() string { return loadName("instances", k.tenant, k.name) }

// loadName is the name of the tasks that run for another swarm.
func (k peerKey) loadName() string { return loadName("peer tasks", k.tenant, k.name, k.root) }

// othersLoad is what the other hosts have of a limit.
func (r *Runtime) othersLoad(name string) int {
	if r.share.cluster == nil {
		return 0
	}
	return int(r.share.cluster.OthersLoad(name))
}

// othersWaiting counts the messages of a tenant that wait at other hosts, 0 for a tenant whose queue has no bound.
func (r *Runtime) othersWaiting(tenant string) int {
	if r.tenants.Quota(tenant).Queue <= 0 {
		return 0
	}
	return r.othersLoad(tenantQueueLoadName(tenant))
}

// shownPart is the part of a limit below which a host need not show what it has: what all hosts do not show is less
// than this part of the limit together.
const shownPart = 16

// SharedLoads lists what this host has of limits that all hosts hold together and that are not divided.
func (r *Runtime) SharedLoads() map[string]int64 {
	has := r.listLoads()
	hosts := r.share.cluster.Workers()
	loads := make(map[string]int64, len(has.tenants))
	for tenant, n := range has.tenants {
		loads[tenantQueueLoadName(tenant)] = int64(n)
	}
	for key, n := range has.instances {
		if most := r.limitsOf(key.swarm()).Queue; most > 0 && n >= most/(shownPart*hosts) {
			loads[key.loadName()] = int64(n)
		}
	}
	for key, n := range has.peers {
		if most := r.limitsOf(key.swarmKey).PeerTasks; most > 0 && n >= most/(shownPart*hosts) {
			loads[key.loadName()] = int64(n)
		}
	}
	for key, n := range has.made {
		if r.limitsOf(key).Instances > 0 {
			loads[key.loadName()] = int64(n)
		}
	}
	return loads
}

// limitsOf returns the limits in force of a swarm, none for one that is not there.
func (r *Runtime) limitsOf(key swarmKey) Limits {
	if def, ok := r.definition(key.tenant, key.name); ok {
		return def.Limits
	}
	return Limits{}
}

// hostLoads are what a host has: messages that wait in tenants with a bound and in instances, tasks of other swarms,
// and instances that it has made.
type hostLoads struct {
	tenants   map[string]int
	instances map[InstanceKey]int
	peers     map[peerKey]int
	made      map[swarmKey]int
}

func (r *Runtime) listLoads() hostLoads {
	r.mu.Lock()
	defer r.mu.Unlock()
	has := hostLoads{map[string]int{}, map[InstanceKey]int{}, maps.Clone(r.peerTasks), map[swarmKey]int{}}
	for tenant, tl := range r.tenantLoads {
		if n := tl.waiting + tl.rows; n > 0 && r.tenants.Quota(tenant).Queue > 0 {
			has.tenants[tenant] = n
		}
	}
	for key, in := range r.instances {
		if n := in.waiting + in.rows; n > 0 {
			has.instances[key] = n
		}
	}
	for key, c := range r.instanceCounts {
		if c.made > 0 {
			has.made[key] = c.made
		}
	}
	return has
}
