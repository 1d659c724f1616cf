// Package simulation owns a simulation of faults: the real runtime, router, capability
// layer and store under a seeded scheduler and fake time, with a store that fails, a
// host that dies, and a peer that loses, repeats and delays. After a run it checks what
// a host promises. A seed gives the same run each time. The package must not know how
// a promise is kept.
//
// Every actor parks at a gate before it does something that others can see: a call of
// the store, a turn, an effect, a request to the peer, an action of the workload. The
// scheduler waits until all goroutines are blocked, lets one parked actor go on, which
// the seed chooses, and repeats. When none is parked, time goes on to the next timer.
package simulation
