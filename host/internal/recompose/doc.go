// Package recompose owns whether a definition that came over the network only
// recombines what an operator's file grants. It must not know HTTP, a runtime or
// a store; it reads nothing but what it is given.
//
// The yardstick of an agent is one agent of the file that runs on the same module:
// the one of the same name if there is such, and else the first in the file that
// grants all that is asked. Never are the grants of two agents of the file added
// up in one.
package recompose
