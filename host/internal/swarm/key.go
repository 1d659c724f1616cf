package swarm

import (
	"strings"

	"skep/host/internal/swarm/scheduler"
)

// InstanceKey names one MAIL instance. Clients choose task ids, so nothing below an
// instance is looked up without it.
type InstanceKey struct {
	Tenant string `json:"tenant"`
	Swarm  string `json:"swarm"`
	// Instance is the principal's role and id, for instance "user:alice".
	Instance string `json:"instance"`
}

func (k InstanceKey) swarm() swarmKey { return swarmKey{k.Tenant, k.Swarm} }

// schedulerOwner is the instance in the queues of the scheduler.
func (k InstanceKey) schedulerOwner() scheduler.Owner {
	return scheduler.Owner{Tenant: k.Tenant, Instance: k.Swarm + "\x1f" + k.Instance}
}

// TaskKey names one task of one instance.
type TaskKey struct {
	InstanceKey
	Task string `json:"task"`
}

// String renders the key for logs and as input of keyed hashes; the separator
// cannot occur in any part.
func (k TaskKey) String() string {
	return strings.Join([]string{k.Tenant, k.Swarm, k.Instance, k.Task}, "\x1f")
}

// DefaultTenant owns everything until a configuration names more tenants.
const DefaultTenant = "default"
