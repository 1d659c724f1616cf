// Package broker owns the connection to a broker of AMQP 0-9-1: it is made again when it was
// lost, a message is acknowledged or set aside when its verdict is known, and publishing ends
// when the broker has stored the message. Its [Message] and [Verdict] are those of other brokers, too.
// It must not know what the messages are.
package broker
