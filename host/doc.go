// Package host owns the wiring: it turns a configuration into a running host
// and says in which order things start and stop. It is the only place where
// the packages under host/internal meet. It must not hold behaviour of its own.
package host
