// Package audit owns the audit log: a file of JSON lines, one for each act that
// matters to the security of a host, each with a hash over itself and the hash of
// the line before it. A line that is altered, removed, inserted or moved breaks
// the chain, and [Verify] returns where. It must not know HTTP, what an act does
// or who may do it.
//
// The log of foreign messages is a second file of the same form; its entries have a
// [Message], and [Log.Append] writes them without a wait for the disk.
//
// Acts are on disk before [Log.Record] returns. Refusals, which any client can
// cause at any rate, are queued by [Log.RecordRefusal] and written by [Log.Run],
// equal ones as one line with their number.
//
// Several processes may write to one log: each locks the file for its lines, and
// continues after the last line of the file. A process that is the only one to write
// sets [Options.Sole] and saves the look at the file.
package audit
