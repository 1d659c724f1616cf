// Package router owns the delivery of mail to other swarms: the messages of one
// task for one peer are sent in their order, each again and again until the peer
// has accepted or refused it, or has not answered for too long. It must not know
// routes, agents, or how outboxes are stored.
//
// Every (task, peer) with messages is an outbox, which one worker drains. An outbox
// whose peer has a [Carrier] is split into a sequence for each recipient. A
// worker is a goroutine that [Router.Run] waits for. The workers of one peer are
// bounded and share its circuit breaker; further outboxes wait in the peer's
// queue.
package router
