// Package directory owns what a host can reach of other swarms: the peers of
// swarm.toml and the registered swarms, as the router sends to them, as agents see
// them and as signatures are verified, and the key that signs for this host. It
// must not know the runtime but by its port KnownSwarms, nor the HTTP interface.
package directory
