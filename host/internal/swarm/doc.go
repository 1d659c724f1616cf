// Package swarm owns the MAIL runtime: instances, tasks, queues, turns and their
// commit. It declares the ports it needs (Store, Executor, Forwarder, MailTools,
// KnownSwarms) and offers Submit, Wait, CancelTask, Follow and Receive to its
// doors. It must not know how messages arrive, how an agent's code is run, or which
// engine stores a task.
//
// A message comes in by Submit or Receive, is routed (route.go), waits as a row in the
// queue of its task, and is handled by a turn: one agent, one message, one transaction.
// What a turn does to the mail world is staged and becomes visible with its commit, or
// never. Run starts every goroutine of the package and waits for all of them.
//
// Files are prefixed by what they deal with: task_ the record, queue and end of a task;
// turn_ one turn and the ops it may call; remote_ mail of other swarms; tenant_ quotas,
// budgets and erasure.
package swarm
