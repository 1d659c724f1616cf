// Package messagelog owns the log of foreign messages: a line for each message that came
// through a gateway or left through one, in a file chained as the audit log is. It has no
// text of a message, only its size and its hash. It must not know a protocol.
package messagelog
