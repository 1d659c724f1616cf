package telemetry

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Commits counts the transactions of the store.
type Commits struct{ took, changes prometheus.Histogram }

// NewCommits returns an empty count.
func NewCommits() *Commits {
	return &Commits{
		took: prometheus.NewHistogram(histogram("skep_store_commit_seconds", "Time of a transaction of the store, from its first change to its durable end.",
			[]float64{.0001, .0005, .001, .005, .01, .05, .1, .5, 1, 5, 10})),
		changes: prometheus.NewHistogram(histogram("skep_store_commit_changes", "Changes that a transaction of the store makes durable together.",
			prometheus.ExponentialBuckets(1, 2, 9))),
	}
}

// Observe counts a transaction.
func (c *Commits) Observe(changes int, took time.Duration) {
	c.changes.Observe(float64(changes))
	c.took.Observe(took.Seconds())
}

// Register adds the metrics to a registry.
func (c *Commits) Register(to prometheus.Registerer) error {
	return errors.Join(to.Register(c.took), to.Register(c.changes))
}
