// Package datadir owns the offline commands on a data directory: backup, restore, keys,
// export, erasure, replay and the audit log. It must not know how a host runs.
package datadir
