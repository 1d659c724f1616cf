// Package mail owns the words of MAIL 1.3: addresses, messages, wrappers,
// owners, ids, subjects and tiers, and the one JSON form each of them has. It
// must not know transports, stores, agents, or any package outside the standard
// library. It starts no goroutine and keeps no state; everything in it may be
// used by many goroutines at once.
//
// Reading is strict and has one outcome: [ParseMessage] and [ParseInterswarm]
// take exactly what the schemas in spec/schema take, and refuse in addition what
// JSON leaves open (duplicate keys, trailing bytes, broken text). Doors that face
// peers soften that with [ParseOptions]. Writing is strict always: a value that
// the schema would refuse cannot be encoded.
//
// The ids in comments (R-001, S-05, X-11 …) number the requirements, facts and
// decisions of the project's MAIL contract.
package mail
