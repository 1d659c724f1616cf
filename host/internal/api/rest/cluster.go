package rest

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"
)

// Cluster is the hosts that share the store, for operators. It is safe for concurrent use.
type Cluster interface {
	// Hosts lists the hosts that are alive, and their feature level.
	Hosts() (list []ClusterHost, level int)
	// Drain makes a host give its tasks away and take no more, until it is started again. It returns
	// ErrNoClusterHost or ErrLastClusterHost.
	Drain(ctx context.Context, id int64) error
	// Finalize raises the feature level to the highest that all hosts have, and returns it.
	Finalize(ctx context.Context) (level int, err error)
	// Counts are numbers of the host that only grow.
	Counts() ClusterCounts
}

// ClusterCounts are what a host has done among others: the hosts that it has fenced, the slots that it took
// and gave away, and the signs of life that came late.
type ClusterCounts struct{ Fenced, Taken, Given, LateBeats int64 }

// ClusterHost is one of the hosts that share the store.
type ClusterHost struct {
	// ID is another one each time the host is started.
	ID      int64
	Address string
	Version string
	// Features is the highest feature level that it has.
	Features int
	Slots    int
	Draining bool
	// Silent is the time since its last sign of life, by the clock of the host that answers.
	Silent time.Duration
	// Self: it is the host that answers.
	Self bool
}

// Refusals of Cluster.Drain.
var (
	ErrNoClusterHost   = errors.New("no host has this id")
	ErrLastClusterHost = errors.New("no other host takes its tasks")
)

// clusterHost is a host as JSON.
type clusterHost struct {
	ID       int64  `json:"id"`
	Address  string `json:"address"`
	State    string `json:"state"`
	Slots    int    `json:"slots"`
	Version  string `json:"version"`
	Features int    `json:"features"`
	Silent   int64  `json:"silent_ms"`
	Self     bool   `json:"self"`
}

func newClusterHost(h ClusterHost) clusterHost {
	state := "active"
	if h.Draining {
		state = "draining"
	}
	if h.Draining && h.Slots == 0 {
		state = "drained"
	}
	return clusterHost{h.ID, h.Address, state, h.Slots, h.Version, h.Features, h.Silent.Milliseconds(), h.Self}
}

// clusterPath is the path of the routes about the hosts that share the store.
const clusterPath = skepPrefix + "cluster"

// cluster returns the hosts that share the store, or why there are none.
func (c *call) cluster() (Cluster, error) {
	if c.h.opt.Cluster == nil {
		return nil, newFault(http.StatusConflict, "this host shares its tasks with no other: its file has no [cluster]")
	}
	return c.h.opt.Cluster, nil
}

// listCluster is GET /skep/v1/cluster.
func (c *call) listCluster() error {
	cluster, err := c.cluster()
	if err != nil {
		return err
	}
	hosts, level := cluster.Hosts()
	list := make([]clusterHost, 0, len(hosts))
	for _, h := range hosts {
		list = append(list, newClusterHost(h))
	}
	return c.reply(struct {
		Level int           `json:"feature_level"`
		Hosts []clusterHost `json:"hosts"`
	}{level, list})
}

// drainHost is POST /skep/v1/cluster/hosts/{host_id}/drain.
func (c *call) drainHost() error {
	cluster, err := c.cluster()
	if err != nil {
		return err
	}
	name := truncate(c.r.PathValue("host_id"))
	id, err := strconv.ParseInt(name, 10, 64)
	if err != nil {
		id = 0 // which no host has
	}
	err = cluster.Drain(c.ctx(), id)
	switch {
	case errors.Is(err, ErrNoClusterHost):
		err = newFault(http.StatusNotFound, "no host of the cluster has the id '%s'", name)
	case errors.Is(err, ErrLastClusterHost):
		err = newFault(http.StatusConflict, "host %d is the last one that takes tasks: start another one first", id)
	}
	if err := c.auditAct("cluster.drain", "host/"+name, err); err != nil {
		return err
	}
	return c.reply(struct {
		ID    int64  `json:"id"`
		State string `json:"state"`
	}{id, "draining"})
}

// finalizeCluster is POST /skep/v1/cluster/finalize.
func (c *call) finalizeCluster() error {
	cluster, err := c.cluster()
	if err != nil {
		return err
	}
	level, err := cluster.Finalize(c.ctx())
	if err := c.auditAct("cluster.finalize", "feature_level/"+strconv.Itoa(level), err); err != nil {
		return err
	}
	return c.reply(struct {
		Level int `json:"feature_level"`
	}{level})
}
