// Package message owns the messages of IaCP 1.0 and their frames: what is read from a
// connection, within limits, and what is wrong with it. It must not know who sends a
// message, nor what becomes of it.
package message
