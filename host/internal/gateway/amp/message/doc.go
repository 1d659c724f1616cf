// Package message owns the messages of AMP 1.0: what is read within limits, how messages
// are written, their signatures, and the error codes of the protocol. It must not know who
// sends a message, nor what becomes of it.
//
// The protocol's own document writes its name AMP and AIP; both are read, and an answer has
// the token of its question.
package message
