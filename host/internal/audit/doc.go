// Package audit owns the audit log: a file of JSON lines, one for each act that
// matters to the security of a host, each with a hash over itself and the hash
// of the line before it. A line that is altered, removed, inserted or moved
// breaks the chain, and [Verify] says where. It must not know HTTP, what an act
// does or who may do it.
//
// Acts are on the disk before [Log.Record] returns. Refusals, which anybody can
// cause at any rate, are only handed over by [Log.Refused]; [Log.Run] is the
// goroutine that writes them, those alike as one line with their number.
//
// Several processes may write to one log: each takes the file's lock for its
// lines, and goes on from the last line it finds.
package audit
