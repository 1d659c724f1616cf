// Package host owns the wiring: New makes a running host of a configuration, Run
// and Close fix the order in which its parts start and stop. No other package
// imports all parts under host/internal. It must not know
// what the parts do with each other: behaviour belongs into them.
package host
