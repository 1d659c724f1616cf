// Package door owns how gateways reach the runtime: who a caller is there, what becomes of
// his messages, and how their answers are read. It implements [gateway.Runtime] over
// [swarm.Runtime] and must not know any protocol.
package door
