// Package definition owns the way from swarm.toml to what the runtime runs: it loads
// modules and programs, keeps copies of modules, binds agents and actions to what they
// are granted, and replaces definitions by a reload or for one tenant. It must not know
// how callers reach the host or how messages travel.
package definition
