// Package refpeer owns a fake of the reference server as another swarm meets it,
// for tests: the routes between swarms, what its runtime does with a task that it
// owns or contributes to, and, byte for byte, the calls that its router makes
// (contract 6, appendix A), its defects included. It must not know anything of the
// host. Its goroutines end with [Peer.Close].
package refpeer
