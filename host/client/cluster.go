package client

import (
	"context"
	"net/http"
	"strconv"
)

// ClusterHost is one of the hosts that share their tasks.
type ClusterHost struct {
	// ID is another one each time the host is started.
	ID int64 `json:"id"`
	// Address is where the other hosts reach it.
	Address string `json:"address"`
	// State is "active", "draining" or "drained".
	State string `json:"state"`
	// Slots is how many of the 1,024 slots of tasks it has.
	Slots   int    `json:"slots"`
	Version string `json:"version"`
	// Features is the highest feature level that it has.
	Features int `json:"features"`
	// SilentMS is the time since its last sign of life in milliseconds, by the clock of the host that
	// has answered.
	SilentMS int64 `json:"silent_ms"`
	// Self: it is the host that has answered.
	Self bool `json:"self"`
}

// Cluster is the hosts that share their tasks.
type Cluster struct {
	FeatureLevel int           `json:"feature_level"`
	Hosts        []ClusterHost `json:"hosts"`
}

const clusterPath = "/skep/v1/cluster"

// Cluster lists the hosts that share their tasks. It takes an operator.
func (c *Client) Cluster(ctx context.Context) (found Cluster, err error) {
	_, err = c.do(ctx, call{method: http.MethodGet, path: clusterPath}, &found)
	return found, err
}

// DrainHost makes a host give its tasks away and take no more, until it is started again. It takes an
// operator.
func (c *Client) DrainHost(ctx context.Context, id int64) error {
	var done struct{}
	_, err := c.do(ctx, call{method: http.MethodPost, path: clusterPath + "/hosts/" + strconv.FormatInt(id, 10) + "/drain", again: true}, &done)
	return err
}

// FinalizeCluster raises the feature level to the highest that all hosts have, and returns it. It takes
// an operator.
func (c *Client) FinalizeCluster(ctx context.Context) (level int, err error) {
	var done struct {
		Level int `json:"feature_level"`
	}
	_, err = c.do(ctx, call{method: http.MethodPost, path: clusterPath + "/finalize", again: true}, &done)
	return done.Level, err
}
