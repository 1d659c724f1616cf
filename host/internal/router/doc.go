// Package router owns the delivery of mail to other swarms: the letters of one
// task for one peer go one after the other, each again and again until the peer
// has taken or refused it, or has not answered for too long. It must not know
// routes, agents, or how letters are kept.
//
// Every (task, peer) with letters is a lane. A lane is a goroutine that [Router.Run]
// waits for; those of one peer are bounded, share what is known of its health, and
// others queue behind them.
package router
