// Package narrowing owns whether a definition that came over the network only
// recombines what an operator's file grants. It must not know HTTP, a runtime or
// a store; it reads nothing but what it is given.
//
// The yardstick of an agent is one agent of the file that runs on the same module:
// the one of the same name if there is such, and else the first in the file. No
// other is tried when that one does not grant what is asked: a definition would
// choose for itself whose grants an agent of the file gets.
package narrowing
