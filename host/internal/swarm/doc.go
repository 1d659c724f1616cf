// Package swarm owns the MAIL runtime: instances, tasks, queues, turns and
// their commit. It declares the ports it needs (Store, Executor, Forwarder,
// Toolbook) and offers its doors Submit, Wait, Cancel and Subscribe. It must
// not know how messages arrive, how an agent's code is run, or which engine
// stores a task.
//
// A message comes in by Submit, waits as a row in its task's queue, and is
// handled by a turn: one agent, one message, one transaction. What a turn does
// to the mail world is staged and becomes visible with its commit, or never.
// Run starts every goroutine of the package and waits for all of them.
package swarm
