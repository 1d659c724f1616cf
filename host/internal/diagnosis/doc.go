// Package diagnosis owns what can be wrong with a host's file, its machine and its data:
// findings, each with an id, how grave it is and what mends it. It must not know how a
// host runs, and changes nothing.
package diagnosis
